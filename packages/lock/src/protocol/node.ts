// One Redis master as the algorithm sees it; verbs.ts says what it can be asked. No question rejects
// for what the network or the server does: a node that cannot be asked answers `unreachable` within
// nodeTimeoutMs of the call.
import type { RedisOptions } from "ioredis";
import type { BallotOf, QuestionOf, Verb } from "./verbs.js";

/** What leads to one server: a redis:// or rediss:// URL, or ioredis options. */
export type ServerSource = string | RedisOptions;

/**
 * An instance of ioredis 4 or newer, described by what is read of it: the caller's copy of ioredis
 * may be of another version than the lock's.
 */
export interface IoredisInstance {
  readonly options: object;
  readonly status: string;
  duplicate(...given: never[]): unknown;
}

/**
 * What a caller gives for one node: a redis:// or rediss:// URL, ioredis options, or an ioredis
 * instance, which is read for its options (host, port, path, tls, user, password, database) and never
 * used or closed. A `keyPrefix` is refused: the namespace keeps keys apart.
 */
export type NodeSource = ServerSource | IoredisInstance;

/**
 * A ballot to come. Can be awaited; a callback given before the ballot is there is called in the
 * same turn. One callback only.
 */
export interface Reply<B> {
  then(told: (ballot: B) => void, failed?: (error: unknown) => void): void;
}

/** Called for one ticket on one node. Must not throw. */
export interface ReleaseListener {
  /**
   * Something that it waits for is free, and reserved: for this ticket, all that it is for; or, where
   * `otherMs` is not 0, for another or a part of it, for so long. `askedAtMs`: sinceMs and waitedMs of
   * what was asked last on that node, added.
   */
  released(otherMs: number, askedAtMs: number): void;
  /**
   * The node can tell this process: already, for the first time, or again after the connection was
   * lost, and with it perhaps the ticket.
   */
  listening(): void;
  /** The connection was lost: nothing is heard until listening begins again. */
  deaf(): void;
}

export interface LockNode {
  /** "n1"… in the order of configuration. */
  readonly name: string;
  /** host:port without credentials. */
  readonly address: string;

  /**
   * The node's epoch as last heard, or undefined before the first contact: it ends with a random
   * word that every admission of any member gives to the nodes whose floors it reads. An
   * acquisition notes the epochs before its first byte is sent and counts only ballots that carry
   * the same: a ballot with another one was cast after some member's memory had been rebuilt from
   * this node's floor, so the token it stored was not seen by that rebuilding, and might be issued
   * again (T2).
   */
  epoch(): string | undefined;

  ask<V extends Verb>(verb: V, question: QuestionOf<V>): Reply<BallotOf<V>>;

  /** What this node tells the ticket. Best effort: the time to live is the guarantee. Returns the undo. */
  onReleased(ticket: string, listener: ReleaseListener): () => void;
  /** What it tells does not arrive, though nothing is known to be wrong. */
  listenAnew(): void;
  /** How long an answer takes now, in the mean; 0 before the first. */
  readonly roundTripMs: number;
  /** How long one took at least; Infinity before the first. */
  readonly distanceMs: number;
  /** Resolves when the first connection has been made or has failed. */
  met(): Promise<void>;
  close(): Promise<void>;
}
