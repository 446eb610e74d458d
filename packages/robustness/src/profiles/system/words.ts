// What the processes of a run and their crew say to each other. Plain data.

export type Mode = "fenced" | "unfenced";

/** Given to a client when it starts. */
export interface ClientOrders {
  /** The place in the crew; after a kill another process takes it. */
  readonly slot: number;
  /** How many were in this place before. */
  readonly life: number;
  readonly mode: Mode;
  readonly seed: string;
  readonly journal: string;
  readonly redisUrls: readonly string[];
  readonly gatewayUrls: readonly string[];
  readonly apiKey: string;
  readonly storeUrl: string;
}

/** Those who have no lease and try all the same: one with tokens that nobody issued, one with what is no token. */
export interface StrangerOrders {
  readonly trade: "forger" | "careless";
  readonly seed: string;
  readonly journal: string;
  readonly gatewayUrls: readonly string[];
  readonly apiKey: string;
}

export type ToActor = { readonly kind: "go" } | { readonly kind: "finish" } | { readonly kind: "leave" };

export interface Tally {
  readonly kind: "tally";
  readonly done: number;
  readonly refused: number;
  readonly unknown: number;
  /** Of those done: stored over what their writer had never seen. Behind the fence there are none. */
  readonly overwrote: number;
}

export type FromActor =
  | { readonly kind: "ready" }
  | Tally
  /** About to stop itself in the middle of its work, to be continued after so long. */
  | { readonly kind: "asleep"; readonly forMs: number }
  | { readonly kind: "awake" }
  /** Its last work was stored, after everything was healed. */
  | { readonly kind: "done" };

/** Documents behind the gateway, and rows of a table that its owner guards. */
export const documents = ["ledgers/1", "ledgers/2", "ledgers/3", "ledgers/4"] as const;
export const rows = ["accounts/1", "accounts/2"] as const;
/** Nobody but strangers ever names these. */
export const untouched = ["untouched/1", "untouched/2"] as const;

export const TTL_MS = 500;
export const SHORT_TTL_MS = 180;
export const MAX_TTL_MS = 800;
export const NODE_TIMEOUT_MS = 80;
