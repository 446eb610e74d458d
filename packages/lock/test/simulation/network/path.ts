// Between one process and one node: the two ways, and every connection that was opened over them.
import type { Chance } from "../engine/chance.js";
import type { ClientProcess } from "../engine/client-process.js";
import type { Timeline } from "../engine/timeline.js";
import type { Connection } from "./connection.js";
import type { Machine } from "./machine.js";
import { type Speed, Way } from "./way.js";

export interface PathSettings {
  readonly timeline: Timeline;
  readonly client: ClientProcess;
  readonly machine: Machine;
  readonly speed: Speed;
  readonly chance: Chance;
  readonly tell: ((actor: string, what: string) => void) | undefined;
}

export class Path {
  readonly timeline: Timeline;
  readonly client: ClientProcess;
  readonly machine: Machine;
  readonly chance: Chance;
  readonly there: Way;
  readonly back: Way;
  readonly tell: PathSettings["tell"];
  /** So often a request reaches the server a second time, later. */
  secondTimes = 0;
  /** How many did. */
  secondDeliveries = 0;
  readonly connections = new Set<Connection>();

  constructor({ timeline, client, machine, speed, chance, tell }: PathSettings) {
    this.timeline = timeline;
    this.client = client;
    this.machine = machine;
    this.chance = chance;
    this.tell = tell;
    this.there = new Way(timeline, speed, chance);
    this.back = new Way(timeline, speed, chance);
  }

  /** Breaks every connection that is open, somewhere in the middle. */
  cut(): void {
    for (const connection of [...this.connections]) connection.cut();
  }

  heal(): void {
    this.there.slowerMs = 0;
    this.back.slowerMs = 0;
    this.secondTimes = 0;
    this.there.open();
    this.back.open();
  }
}
