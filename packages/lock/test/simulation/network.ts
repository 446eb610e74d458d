// Between one process and one node: the two directions and all connections.

import { RedisError, type Reply } from "./commands.js";
import type { Chance, ClientProcess, Timeline } from "./engine.js";
import type { Peer, SimServer } from "./sim-server.js";

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

// One direction between a process and a node: how long bytes take, and whether they pass. Held
// bytes pass once it is open again; on one connection nothing overtakes.

export interface Speed {
  readonly leastMs: number;
  /** Random addition, mostly small. */
  readonly jitterMs: number;
}

export class Direction {
  /** Addition while a fault lasts. */
  slowerMs = 0;
  readonly #timeline: Timeline;
  readonly #speed: Speed;
  readonly #chance: Chance;
  #isHeld = false;
  #waiting: (() => void)[] = [];

  constructor(timeline: Timeline, speed: Speed, chance: Chance) {
    this.#timeline = timeline;
    this.#speed = speed;
    this.#chance = chance;
  }

  get isHeld(): boolean {
    return this.#isHeld;
  }

  delayMs(): number {
    const x = this.#chance.next();
    return this.#speed.leastMs + this.#speed.jitterMs * x * x * x + this.slowerMs;
  }

  hold(): void {
    this.#isHeld = true;
  }

  open(): void {
    this.#isHeld = false;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const go of waiting) this.#timeline.after(this.delayMs(), go);
  }

  /** Continues when the direction is open again. */
  wait(go: () => void): void {
    this.#waiting.push(go);
  }
}

/** Messages in one direction of one connection, in the order in which they were sent. */
export class Pipe<Message> {
  readonly #timeline: Timeline;
  readonly #way: Direction;
  readonly #deliver: (message: Message) => void;
  #queue: Message[] = [];
  #head = 0;
  #lastAt = 0;
  readonly #arrived = (): void => this.#arrive();

  constructor(timeline: Timeline, way: Direction, deliver: (message: Message) => void) {
    this.#timeline = timeline;
    this.#way = way;
    this.#deliver = deliver;
  }

  get length(): number {
    return this.#queue.length - this.#head;
  }

  send(message: Message): void {
    this.#queue.push(message);
    this.#lastAt = Math.max(this.#lastAt, this.#timeline.now + this.#way.delayMs());
    this.#timeline.at(this.#lastAt, this.#arrived);
  }

  /** Of the messages under way only the first `count` arrive. */
  keep(count: number): void {
    this.#queue.length = Math.min(this.#queue.length, this.#head + count);
  }

  // Each arrival delivers the first message, so nothing overtakes where some arrivals were held.
  #arrive(): void {
    if (this.#head >= this.#queue.length) return;
    if (this.#way.isHeld) {
      this.#way.wait(this.#arrived);
      return;
    }
    const message = this.#queue[this.#head++] as Message;
    if (this.#head > 64 && this.#head * 2 > this.#queue.length) {
      this.#queue = this.#queue.slice(this.#head);
      this.#head = 0;
    }
    this.#deliver(message);
  }
}

// One accepted connection between a process and a server, as TCP has it: two ordered pipes whose
// end each side may see at another moment, and bytes that may still arrive after one side gave up.

/** A request, executed at the server. */
export interface Request {
  readonly name: string;
  /** Scripts may be delivered twice. */
  readonly isScript: boolean;
  execute(peer: Peer): Reply;
}

export interface ClientEnd {
  replied(reply: Reply | Error): void;
  news(text: string): void;
  /** The client has seen the end. */
  lost(): void;
}

type Upward = { readonly kind: "request"; readonly request: Request } | { readonly kind: "end" };
type Downward =
  | { readonly kind: "reply"; readonly reply: Reply | Error }
  | { readonly kind: "news"; readonly text: string }
  | { readonly kind: "end" };

/** A second delivery comes within this time. */
const SECOND_TIME_WITHIN_MS = 300;

export class Connection implements Peer {
  readonly id: number;
  readonly channels = new Set<string>();
  readonly #path: Path;
  readonly #runId: string;
  readonly #client: ClientEnd;
  readonly #up: Pipe<Upward>;
  readonly #down: Pipe<Downward>;
  #isOpenThere = true;
  #isOpenHere = true;

  /** Created when the server accepts; the client learns of it later. */
  constructor(path: Path, id: number, client: ClientEnd) {
    this.#path = path;
    this.id = id;
    this.#client = client;
    this.#runId = path.machine.server.runId;
    this.#up = new Pipe(path.timeline, path.there, (message) => path.machine.execute(() => this.#reached(message)));
    this.#down = new Pipe(path.timeline, path.back, (message) => path.client.arrive(() => this.#heard(message)));
    path.connections.add(this);
  }

  send(request: Request): void {
    if (this.#isOpenHere) this.#up.send({ kind: "request", request });
  }

  /** The server ends it: earlier replies still arrive. */
  ended(): void {
    this.#isOpenThere = false;
    this.#down.send({ kind: "end" });
  }

  news(_channel: string, text: string): void {
    this.#down.send({ kind: "news", text });
  }

  /** Broken in the middle: in each direction only a first part of what was under way arrives. */
  cut(): void {
    const { chance, client } = this.#path;
    this.#up.keep(chance.below(this.#up.length + 1));
    this.#up.send({ kind: "end" });
    this.#down.keep(chance.below(this.#down.length + 1));
    this.#down.send({ kind: "end" });
    if (client.state === "dead") this.#leaveHere();
  }

  /** The client resets it: what has left may still arrive, even if the direction was held. */
  reset(): void {
    if (!this.#isOpenHere) return;
    this.#leaveHere();
    this.#up.keep(this.#path.chance.below(this.#up.length + 1));
    this.#up.send({ kind: "end" });
  }

  /** The client ends it: what was sent arrives. */
  finish(): void {
    if (!this.#isOpenHere) return;
    this.#leaveHere();
    this.#up.send({ kind: "end" });
  }

  #leaveHere(): void {
    this.#isOpenHere = false;
    this.#down.keep(0);
    if (!this.#isOpenThere) this.#path.connections.delete(this);
  }

  #reached(message: Upward): void {
    const { server } = this.#path.machine;
    if (!this.#isOpenThere || server.runId !== this.#runId) return;
    if (message.kind === "end") {
      this.#isOpenThere = false;
      server.forget(this);
      if (!this.#isOpenHere) this.#path.connections.delete(this);
      return;
    }
    this.#down.send({ kind: "reply", reply: this.#execute(message.request) });
    if (this.#path.secondTimes > 0 && message.request.isScript && this.#path.chance.next() < this.#path.secondTimes) {
      this.#path.timeline.after(this.#path.chance.next() * SECOND_TIME_WITHIN_MS, () => this.#again(message.request));
    }
  }

  /** A proxy in between sends the request again; its answer is dropped. */
  #again(request: Request): void {
    const { machine, log } = this.#path;
    if (machine.server.runId !== this.#runId) return;
    machine.execute(() => {
      if (machine.server.runId !== this.#runId) return;
      this.#path.secondDeliveries++;
      log?.(machine.server.name, `gets ${request.name} a second time`);
      this.#execute(request);
    });
  }

  #execute(request: Request): Reply | Error {
    try {
      return request.execute(this);
    } catch (error) {
      if (error instanceof RedisError) return error;
      throw error;
    }
  }

  #heard(message: Downward): void {
    if (!this.#isOpenHere) return;
    if (message.kind === "reply") this.#client.replied(message.reply);
    else if (message.kind === "news") this.#client.news(message.text);
    else {
      this.#leaveHere();
      // The server refuses what is still under way to it.
      this.#client.lost();
    }
  }
}
