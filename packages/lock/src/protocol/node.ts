// What the algorithm may ask of one Redis master. No request rejects for what the network or the
// server does: a node that cannot be asked answers `unreachable` within nodeTimeoutMs of the call.
import type { RedisOptions } from "ioredis";
import type { ExtendBallot, GrantBallot, InspectBallot, RaiseBallot, ReleaseBallot, SealBallot } from "./ballot.js";

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

export interface Ownership {
  /** One or more; taken all or none. */
  readonly resources: readonly string[];
  /** The secret of one acquisition. */
  readonly owner: string;
}

export interface GrantQuestion extends Ownership {
  /** Shown to people: host, process id, service. */
  readonly label: string;
  readonly ttlMs: number;
  /** The caller waits: it may take what is reserved for it, and is refused with a ticket. */
  readonly wait?: Wait | undefined;
  /**
   * What the token of a resource that has no counter is not to be below; 0 or none: no wish. A node
   * grants no more than its floor allows (grant.lua).
   */
  readonly leastToken?: number;
}

/** Since when a caller waits, by its wall clock, and for how long, by its monotonic one. */
export interface Wait {
  readonly sinceMs: number;
  readonly waitedMs: number;
  /** The name of its ticket among those of this process; none where it wants a single resource. */
  readonly ticket?: string;
}

export interface ExtendQuestion extends Ownership {
  readonly ttlMs: number;
}

export interface ReleaseQuestion extends Ownership {
  /** Whether the next one in the queue is told. Not by an acquisition that gives back its part. */
  readonly tells: boolean;
  /**
   * The name of the ticket that won the lease: a node that did not grant it may have it still, or
   * may have reserved the lock for it.
   */
  readonly ticket?: string | undefined;
}

/**
 * In the place of an owner: releases nothing, and calls the roll. The first 64 in the queue are
 * told, and ask again; the ticket of a process that stands still is gone.
 */
export const ROLL_CALL = "~";

/** Called for one resource on one node. Must not throw. */
export interface ReleaseListener {
  /**
   * `first`: it is reserved for this process. `backup`: for the one before it in the queue.
   * `askedAtMs`: sinceMs and waitedMs of what was asked last on that node, added.
   */
  released(place: "first" | "backup", askedAtMs: number): void;
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
   * this node's floor, so the token it stored was not seen by that rebuilding (T2).
   */
  epoch(): string | undefined;

  grant(question: GrantQuestion): Reply<GrantBallot>;
  /** Stores `token` for all resources if they all still have this owner. */
  seal(question: Ownership & { readonly token: number }): Reply<SealBallot>;
  /** Renews where the owner still has it; never creates a key. */
  extend(question: ExtendQuestion): Reply<ExtendBallot>;
  /**
   * Creates the key again where there is none; only after a quorum confirmed the owner in the same
   * round.
   */
  heal(question: GrantQuestion & { readonly token: number }): Reply<ExtendBallot>;
  /**
   * Compare-and-delete, then tells the next in the queue. Travels behind every earlier request on
   * the same connection, so it also gives back a grant that is still on its way; if the connection
   * was lost meanwhile it is sent again on the next one, for as long as the key could live.
   */
  release(question: ReleaseQuestion): Reply<ReleaseBallot>;
  inspect(resource: string): Reply<InspectBallot>;
  /**
   * Raises the counter to at least `token` whoever owns the resource; with `remove: "holder"` also
   * deletes the lock key and tells the next in the queue.
   */
  raise(question: { readonly resource: string; readonly token: number; readonly remove: "holder" | "nothing" }): Reply<RaiseBallot>;

  /**
   * What this node tells the ticket of the resource. Best effort: the time to live is the
   * guarantee. Returns the undo.
   */
  onReleased(resource: string, listener: ReleaseListener, ticket?: string): () => void;
  /** The caller waits no longer: its ticket and what is reserved for it go to the next. */
  leave(resources: readonly string[], ticket?: string): Reply<ReleaseBallot>;

  /** Resolves when the first connection has been made or has failed. */
  met(): Promise<void>;
  close(): Promise<void>;
}
