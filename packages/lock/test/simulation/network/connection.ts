// One accepted connection between a process and a server, as TCP has it: two ordered pipes whose
// end each side may see at another moment, and bytes that may still arrive after one side gave up.
import type { Reply } from "../server/commands.js";
import { RedisError } from "../server/memory.js";
import type { Peer } from "../server/sim-server.js";
import { Pipe } from "./direction.js";
import type { Path } from "./path.js";

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
