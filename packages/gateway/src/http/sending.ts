// Answers on their way out. One budget, of which each caller has its share, bounds the bytes that are
// read from Postgres for an answer and those that no socket has taken yet. What may be large is read
// one at a time, so that small answers pass by; and a connection that takes too little is ended.
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { getHeapStatistics } from "node:v8";
import type { Unavailable } from "../fence/verdict.js";
import { BoundedWait } from "../store/bounded-wait.js";
import { SLICE_BYTES } from "./connection-state.js";
import { notApplied } from "./problems.js";
import { Shares } from "./shares.js";

/** As for bodies, and on a small heap never so much that there is no room for what answers are made of. */
const BUDGET_BYTES = Math.min(128 * 1024 * 1024, getHeapStatistics().heap_size_limit / 4);
/** Of an answer for which a caller has room also above its large ones. */
const SMALL_BYTES = 64 * 1024;
/** Reads under way that may be large. Two brought no more bytes, and small answers waited six times as long. */
const LARGE_AT_ONCE = 1;
/** Jsonb is shown with a space after each comma and colon, of which a document may have one for each other character. */
const AS_SHOWN = 1.5;
/** So many times as long waits what was done already: a refusal would leave its caller in doubt. */
const DONE_WAITS = 4;
/** Between two of them a connection takes a slice of its answer, or is ended. */
const LOOK_EVERY_MS = 5_000;

interface SendingLimits {
  readonly documentLimitBytes: number;
  /** How long a large read waits for its turn and for room. */
  readonly maxWaitMs: number;
  readonly budgetBytes?: number | undefined;
  readonly lookEveryMs?: number | undefined;
}

export const noRoom = notApplied("unavailable", "Too many bytes of answers wait to be sent.");

/** Memory that an answer is made of, or several with the same document. */
export class Held {
  result: Promise<unknown> | undefined;
  users = 0;

  constructor(
    readonly caller: string,
    public bytes: number,
    readonly key?: string | undefined,
  ) {}
}

interface Wanted {
  readonly caller: string;
  /** Reads of one key get the same; undefined: like no other. */
  readonly key?: string | undefined;
  /** What the answer is to has been done. */
  readonly isDone?: boolean | undefined;
}

/** A read that waits for its turn and for room. */
interface Turn extends Wanted {
  readonly begin: (held: Held | Unavailable) => void;
}

interface Connection {
  readonly unsent: Map<ServerResponse, Held>;
  /** Bytes that it had taken at the last look; undefined: nothing was being sent. */
  takenBefore: number | undefined;
}

export class Sending {
  readonly shares: Shares;
  /** Of the largest document, as it is shown. */
  readonly #largestBytes: number;
  readonly #lookEveryMs: number;
  readonly #maxWaitMs: number;
  readonly #wait: BoundedWait<Turn>;
  /** In the order in which they came. */
  readonly #waiting = new Set<Turn>();
  readonly #underWay: Held[] = [];
  #lastCaller = "";
  /** What is being read or sent, for others that want the same. */
  readonly #byKey = new Map<string, Held>();
  readonly #connections = new Map<Socket, Connection>();
  #timer: NodeJS.Timeout | undefined;

  constructor(limits: SendingLimits) {
    const { documentLimitBytes, maxWaitMs, budgetBytes = BUDGET_BYTES, lookEveryMs = LOOK_EVERY_MS } = limits;
    this.#largestBytes = AS_SHOWN * documentLimitBytes;
    this.#lookEveryMs = lookEveryMs;
    // One caller alone may read the largest, also where the heap is small.
    this.shares = new Shares(Math.max(budgetBytes, 2 * this.#largestBytes));
    const bounds = { maxAccepted: 10_000, maxAcceptedBytes: Number.POSITIVE_INFINITY, maxWaitMs };
    this.#maxWaitMs = maxWaitMs;
    this.#wait = new BoundedWait(bounds, (turn, why) => this.#taken(turn).begin(why));
  }

  hasRoom(caller: string, bytes: number): boolean {
    return this.shares.held === 0 || this.shares.hasRoom(caller, bytes, bytes <= SMALL_BYTES);
  }

  /**
   * What may be large is read in its turn, once there is room for the largest. `sizeOf` says what it
   * came to. Undefined: there was no room in time. Whoever gets it leaves it (`leave`, or `sent`).
   */
  async read<T>(
    wanted: Wanted,
    fetch: () => Promise<T>,
    sizeOf: (result: T) => number,
  ): Promise<{ readonly held: Held; readonly result: T } | undefined> {
    const held = await this.#turn(wanted);
    if (held === undefined) return undefined;
    held.result ??= this.#fetch(held, fetch, sizeOf);
    try {
      return { held, result: (await held.result) as T };
    } catch (error) {
      this.leave(held);
      throw error;
    }
  }

  async #fetch<T>(held: Held, fetch: () => Promise<T>, sizeOf: (result: T) => number): Promise<T> {
    try {
      const result = await fetch();
      const bytes = sizeOf(result);
      this.shares.take(held.caller, bytes - held.bytes);
      held.bytes = bytes;
      return result;
    } finally {
      if (held.bytes === 0) this.#forget(held); // Whoever comes now may fare better.
      this.#underWay.splice(this.#underWay.indexOf(held), 1);
      this.#next();
    }
  }

  async #turn(wanted: Wanted): Promise<Held | undefined> {
    const same = wanted.key === undefined ? undefined : this.#byKey.get(wanted.key);
    if (same !== undefined) return join(same);
    const begun = new Promise<Held | Unavailable>((begin) => {
      const turn: Turn = { ...wanted, begin };
      const refusal = this.#wait.accept(turn, 0, this.#maxWaitMs * (wanted.isDone === true ? DONE_WAITS : 1));
      if (refusal !== undefined) begin(refusal);
      else this.#waiting.add(turn);
    });
    this.#next();
    const held = await begun;
    return held instanceof Held ? held : undefined;
  }

  #taken(turn: Turn): Turn {
    this.#waiting.delete(turn);
    this.#wait.leave(turn);
    return turn;
  }

  /** The first that has room, of another caller than the last one if there is one. */
  #next(): void {
    while (this.#underWay.length < LARGE_AT_ONCE && this.#waiting.size > 0) {
      const full = new Set<string>();
      let [chosen]: Turn[] = [];
      for (const turn of this.#waiting) {
        if (full.has(turn.caller)) continue;
        if (!this.shares.hasRoom(turn.caller, this.#largestBytes, false)) full.add(turn.caller);
        else if (turn.caller !== this.#lastCaller) {
          chosen = turn;
          break;
        } else chosen ??= turn;
      }
      if (chosen === undefined) return;
      this.#begin(chosen);
    }
  }

  #begin(first: Turn): void {
    const held = new Held(first.caller, this.#largestBytes, first.key);
    this.shares.take(first.caller, this.#largestBytes);
    this.#underWay.push(held);
    this.#lastCaller = first.caller;
    if (first.key !== undefined) this.#byKey.set(first.key, held);
    for (const turn of this.#waiting)
      if (turn === first || (turn.key !== undefined && turn.key === first.key)) this.#taken(turn).begin(join(held));
  }

  leave(held: Held): void {
    held.users -= 1;
    if (held.users > 0) return;
    this.#forget(held);
    this.shares.give(held.caller, held.bytes);
    this.#next();
  }

  #forget(held: Held): void {
    if (held.key !== undefined && this.#byKey.get(held.key) === held) this.#byKey.delete(held.key);
  }

  /** The answer was given to its connection: what that has not taken counts until it has, or is closed. */
  sent(response: ServerResponse, caller: string, held: Held | undefined): void {
    const { socket } = response.req;
    const isTaken = response.writableLength === 0 && (held === undefined || response.writableEnded);
    if (isTaken || socket.destroyed) {
      if (held !== undefined) this.leave(held);
      return;
    }
    const unsent = held ?? join(new Held(caller, response.writableLength));
    if (held === undefined) this.shares.take(caller, unsent.bytes);
    const connection = this.#connections.get(socket) ?? this.#connected(socket);
    connection.unsent.set(response, unsent);
    response.once("finish", () => {
      if (!connection.unsent.delete(response)) return;
      if (connection.unsent.size === 0) connection.takenBefore = undefined;
      this.leave(unsent);
    });
  }

  #connected(socket: Socket): Connection {
    const connection: Connection = { unsent: new Map(), takenBefore: undefined };
    this.#connections.set(socket, connection);
    socket.once("close", () => {
      this.#connections.delete(socket);
      const all = [...connection.unsent.values()];
      connection.unsent.clear();
      for (const held of all) this.leave(held);
    });
    this.#timer ??= setInterval(() => setImmediate(() => this.#look()), this.#lookEveryMs).unref();
    return connection;
  }

  #look(): void {
    for (const [socket, connection] of this.#connections) {
      // One that waits for an answer before it is not being sent.
      const isSending = [...connection.unsent.keys()].some((response) => response.socket !== null);
      const taken = socket.bytesWritten - socket.writableLength;
      if (isSending && connection.takenBefore !== undefined && taken - connection.takenBefore < SLICE_BYTES) socket.destroy();
      connection.takenBefore = isSending ? taken : undefined;
    }
    if (this.#connections.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

function join(held: Held): Held {
  held.users += 1;
  return held;
}
