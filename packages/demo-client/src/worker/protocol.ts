// What the demo and a worker process send each other over the channel between them: plain data.
import type { Step } from "../output/events.js";

/** Where a worker finds the servers; sent at the start of each act. */
export interface WorkerConfig {
  readonly name: string;
  readonly redisUrls: readonly string[];
  /** Of leases that are asked for without a ttl of their own. */
  readonly ttlMs: number;
  readonly maxTtlMs?: number;
  readonly nodeTimeoutMs: number;
  readonly route: Route;
  readonly gatewayUrl: string;
  /** For controls, which write past the gateway. */
  readonly databaseUrl: string;
}

/**
 * How the store is reached: through the gateway with the lease's token, or past it, unfenced; there
 * each write overwrites what it finds, or, with a version column, only what its worker has read.
 */
export type Route = "gateway" | "postgres" | "version column";

export type Document = Readonly<Record<string, unknown>>;

export interface Resource {
  /** As the reader sees it. */
  readonly shown: string;
  /** As the lock and the store know it: unique to this run. */
  readonly name: string;
}

export interface Refused {
  readonly ok: false;
  readonly code: string;
  readonly message: string;
  readonly status?: number | undefined;
  readonly currentToken?: number | undefined;
  readonly presentedToken?: number | undefined;
}

export interface Granted {
  readonly ok: true;
  readonly token: number;
  /** By `monotonicMs`. */
  readonly grantedAt: number;
  readonly validUntilAt: number;
}

export interface NotGranted extends Refused {
  /** How many nodes answered and had no vote, because they may have forgotten a grant. */
  readonly quarantined: number;
}

export interface ReadResult {
  readonly ok: true;
  readonly document: Document | null;
  readonly rev: number;
}

export type WriteResult =
  | {
      readonly ok: true;
      readonly status: number;
      readonly rev: number;
      /** The update that this worker had not seen, and that its own has replaced. */
      readonly overwritten?: Document;
    }
  | Refused;

/** Whether a worker looks at its lease again between its computation and its write. */
export type BeforeWriting = "trusts" | "looks_again";

/** The name of a public method of Worker, and its arguments. */
export interface WorkerCall {
  readonly verb: string;
  readonly args: readonly unknown[];
}

export interface WorkerStep extends Pick<Step, "kind" | "from" | "to" | "text" | "token"> {
  /** By `monotonicMs`. */
  readonly at: number;
  /** From now on the worker holds a lease for so long. */
  readonly leaseMs?: number;
}

/** What a worker tells on its own, between its answers. */
export type WorkerEvent = { readonly event: "step"; readonly step: WorkerStep } | { readonly event: "about_to_write" };

/** A scenario went otherwise than it must: the demonstration has failed, not the program. */
export class UnexpectedOutcome extends Error {
  override readonly name = "UnexpectedOutcome";
}

/** The clock that all processes of a machine share. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
