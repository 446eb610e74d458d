// What the harness and its worker processes say to each other. Plain data.

interface CommonOrders {
  /** Of the process: c3.1 is the second process in the place of c3. */
  readonly name: string;
  readonly seed: string;
}

interface ClientOrders extends CommonOrders {
  /** How it is numbered in histories. */
  readonly client: number;
  readonly journal: string;
  readonly redisUrls: readonly string[];
}

export interface LockOrders extends ClientOrders {
  readonly traffic: "one lock";
  /** unsealed is the control: a lock that neither seals nor quarantines. */
  readonly lock: "palisade" | "unsealed";
  readonly leases: number;
  /** Of how many of its leases it reaches the end: by staying, by renewing, by being stopped. */
  readonly longHolds: number;
}

export interface DocumentOrders extends ClientOrders {
  readonly traffic: "documents";
  readonly fenced: boolean;
  readonly ownsTable: boolean;
  readonly gatewayUrls: readonly string[];
  readonly apiKey: string;
  readonly storeUrl: string;
}

/** A program without a lease: the forger invents tokens, the careless one sends what is none. */
export interface IntruderOrders extends CommonOrders {
  readonly traffic: "intrusion";
  readonly intruder: "forger" | "careless";
  readonly journal: string;
  readonly gatewayUrls: readonly string[];
  readonly apiKey: string;
}

export type Orders = (LockOrders | DocumentOrders | IntruderOrders) & { readonly reportEveryMs: number };

/** Each is answered when it is done: the orders, when it can begin; "work", when its last operation has ended. */
export type Ask = { readonly orders: Orders } | "work" | "finish" | "leave";

/** Since the last report. */
export interface Tally {
  readonly done: number;
  readonly refused: number;
  readonly unknown: number;
  /** Of those done: stored over a revision that the writer had not read; none behind the fence. */
  readonly overwrote: number;
}
export const noTally: Tally = { done: 0, refused: 0, unknown: 0, overwrote: 0 };

/** What it tells between its answers. */
export type Told =
  | { readonly kind: "tally"; readonly tally: Tally }
  /** About to stop itself by a signal, to be continued after so long. */
  | { readonly kind: "asleep"; readonly forMs: number }
  | { readonly kind: "awake" };

export interface Traffic {
  /** Resolves as soon as it can begin. */
  ready(): Promise<unknown>;
  /** Until it is over, and then the last operation. */
  work(): Promise<void>;
  close(): Promise<unknown>;
}

/** What a traffic may use of the process that it runs in. */
export interface Process {
  /** Told to finish. */
  readonly over: AbortSignal;
  /** For the tally. */
  count(what: keyof Tally): void;
  /** Stops the process by a real signal, unless it is to finish; the harness continues it. */
  pause(forMs: number): Promise<void>;
}
