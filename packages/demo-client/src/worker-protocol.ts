// What the director of a story says to a worker process, and what it hears back: plain data over the channel between the two. Decides nothing.
import type { ClassicOptions } from "./classic-lock.js";

/** Where a worker finds everything; sent once, first. */
export interface Surroundings {
  readonly name: string;
  readonly redisUrls: readonly string[];
  readonly namespace: string;
  /** Of most leases of the story; each is asked for with a ttl of its own. */
  readonly ttlMs: number;
  readonly maxTtlMs?: number;
  readonly nodeTimeoutMs: number;
  readonly gatewayUrl: string;
  readonly apiKey?: string | undefined;
  /** For controls only: where the gateway is walked around. */
  readonly databaseUrl: string;
}

/** Through the gateway with the token of the lease, or straight into a table that knows no fence. */
export type Door = "gateway" | "postgres";

export type Document = Readonly<Record<string, unknown>>;

export interface AcquireResult {
  readonly token: number;
  readonly remainingMs: number;
  readonly tookMs: number;
  /** When it was granted and until when it is valid, on the one monotonic clock that all processes of a machine share. */
  readonly grantedAt: number;
  readonly validUntilAt: number;
  /** How many nodes granted it, as far as they have answered. */
  readonly granted: number;
  readonly nodes: number;
}

export interface No {
  readonly ok: false;
  readonly code: string;
  readonly message: string;
}

/** What the lock says when it says no. */
export interface NotAcquired extends No {
  /** How many nodes were up, and not believed. */
  readonly quarantined: number;
}

export type Answer<T> = ({ readonly ok: true } & T) | No;

export interface Written {
  readonly status: number;
  readonly rev: number;
}

export interface Refused extends No {
  readonly status?: number | undefined;
  readonly currentToken?: number | undefined;
  readonly presentedToken?: number | undefined;
}

export type WriteResult = ({ readonly ok: true } & Written) | Refused;

export interface ReadResult {
  readonly document: Document | null;
  readonly rev: number;
}

interface At {
  readonly resource: string;
}

interface WriteAt extends At {
  readonly door: Door;
  readonly document: Document;
}

/** Whether a worker looks at its lease again before it writes. */
export type BeforeWriting = "trusts" | "looks_again";

type Ok<T = object> = { readonly ok: true } & T;

/** Everything a worker can be asked to do: what with, and what it answers. */
export interface Verbs {
  meet: { readonly with: Surroundings; readonly answer: Ok };
  acquire: {
    readonly with: At & { readonly waitMs: number; readonly ttlMs: number; readonly renew?: boolean };
    readonly answer: ({ readonly ok: true } & AcquireResult) | NotAcquired;
  };
  /** Whether it believes that it holds the lock now, by its own clock. */
  believes: { readonly with: At; readonly answer: Ok<{ readonly held: boolean; readonly remainingMs: number }> };
  release: { readonly with: At; readonly answer: Ok<{ readonly outcome: string }> };
  /** One attempt with a lock made by hand. */
  takeClassic: {
    readonly with: At & { readonly lock: ClassicOptions };
    readonly answer: Ok<{ readonly taken: boolean; readonly remainingMs: number }>;
  };
  /** Connects to the nodes ahead of the attempt. */
  connectClassic: { readonly with: { readonly lock: ClassicOptions }; readonly answer: Ok };
  releaseClassic: { readonly with: At & { readonly check: "owner" | "nobody" }; readonly answer: Ok<{ readonly removed: number }> };
  seal: { readonly with: At; readonly answer: Answer<ReadResult> };
  read: { readonly with: At & { readonly door: Door }; readonly answer: Answer<ReadResult> };
  write: { readonly with: WriteAt; readonly answer: WriteResult };
  /** Looks at its lease, says "about to write", computes without a break, and writes. */
  computeAndWrite: {
    readonly with: WriteAt & {
      /** A file: the computation is done when it is there. */
      readonly doneWhen: string;
      readonly beforeWriting: BeforeWriting;
    };
    readonly answer: WriteResult;
  };
  leave: { readonly with: object; readonly answer: Ok };
}

export type Verb = keyof Verbs;

export interface Request {
  readonly id: number;
  readonly verb: Verb;
  readonly with: unknown;
}

export type Report =
  | { readonly id: number; readonly answer: unknown }
  /** The worker itself failed: a bug, never something the world does. */
  | { readonly id: number; readonly failure: string }
  /** Said without being asked. */
  | { readonly sign: "about_to_write" | "writes" }
  | { readonly sign: "renewed"; readonly resource: string; readonly outcome: string; readonly remainingMs: number }
  | { readonly sign: "lease_lost"; readonly resource: string; readonly token: number; readonly reason: string };
