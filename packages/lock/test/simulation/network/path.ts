// Between one process and one node: the two directions and all connections.
import type { Chance } from "../engine/chance.js";
import type { ClientProcess } from "../engine/client-process.js";
import type { Timeline } from "../engine/timeline.js";
import type { SimServer } from "../server/sim-server.js";
import { Direction, type Speed } from "./direction.js";

export interface PathSettings {
  readonly timeline: Timeline;
  readonly client: ClientProcess;
  readonly machine: Machine;
  readonly speed: Speed;
  readonly chance: Chance;
  readonly log: ((actor: string, what: string) => void) | undefined;
}

export class Path {
  readonly timeline: Timeline;
  readonly client: ClientProcess;
  readonly machine: Machine;
  readonly chance: Chance;
  readonly there: Direction;
  readonly back: Direction;
  readonly log: PathSettings["log"];
  /** The share of requests that reach the server a second time, later. */
  secondTimes = 0;
  /** How many requests did. */
  secondDeliveries = 0;
  readonly connections = new Set<{ cut(): void }>();

  constructor({ timeline, client, machine, speed, chance, log }: PathSettings) {
    this.timeline = timeline;
    this.client = client;
    this.machine = machine;
    this.chance = chance;
    this.log = log;
    this.there = new Direction(timeline, speed, chance);
    this.back = new Direction(timeline, speed, chance);
  }

  /** Breaks every open connection, somewhere in the middle of what is under way. */
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

// The machine of one node. Requests to a stopped server wait until it continues; a machine whose
// server is down refuses connections.
export class Machine {
  readonly server: SimServer;
  state: "running" | "stopped" | "down" = "running";
  isRefusing = false;
  #waiting: (() => void)[] = [];

  constructor(server: SimServer) {
    this.server = server;
  }

  get accepts(): boolean {
    return this.state !== "down" && !this.isRefusing;
  }

  /** Executes now, or when the server continues. Requests of an earlier life are dropped. */
  execute(run: () => void): void {
    if (this.state === "running") run();
    else if (this.state === "stopped") this.#waiting.push(run);
  }

  stop(): void {
    if (this.state === "running") this.state = "stopped";
  }

  continue(): void {
    if (this.state !== "stopped") return;
    this.state = "running";
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const run of waiting) run();
  }

  goDown(): void {
    this.state = "down";
    this.#waiting = [];
  }

  comeUp(): void {
    this.state = "running";
  }
}
