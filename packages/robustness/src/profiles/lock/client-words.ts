// What a client process and the crew say to each other. Plain data.
import type { Stall, Tenure } from "../../history/lease-record.js";

/** The one resource that everybody wants. */
export const RESOURCE = "the one";

export type Kind = "palisade" | "naive";

/** Given to the client when it starts. */
export interface ClientOrders {
  readonly client: number;
  readonly kind: Kind;
  readonly seed: string;
  readonly urls: readonly string[];
  readonly leases: number;
  /** Of how many of its leases it tries the end: by staying, by renewing, by being stopped. */
  readonly longStays: number;
  readonly ttlMs: number;
  readonly longStayTtlMs: number;
  readonly maxTtlMs: number;
  readonly nodeTimeoutMs: number;
}

export type ToClient = { readonly kind: "go" } | { readonly kind: "enough" } | { readonly kind: "leave" };

export interface News {
  readonly kind: "news";
  readonly tenures: readonly Tenure[];
  readonly stalls: readonly Stall[];
  /** How often acquire failed, by the code of the error. */
  readonly refusals: Readonly<Record<string, number>>;
}

export type FromClient =
  | { readonly kind: "ready" }
  | News
  /** It is about to stop itself, holding the lock, and is to be continued after so long. */
  | { readonly kind: "asleep"; readonly forMs: number }
  | { readonly kind: "awake" }
  | { readonly kind: "done" };
