// What the browser asks the gateway and what it is told, as JSON: both halves of the page have these
// types from here. How long something lasts or has lasted is counted from the moment of the message,
// because the clocks of gateway and browser differ; moments are Unix times of the gateway. All times
// are in milliseconds. What is undefined is not sent.

/** The events of the stream by their names. */
export interface Events {
  /** The first one. */
  readonly hello: Hello;
  /** Once a second, and when a node has changed its state. */
  readonly state: State;
  /** Writes that were refused since the last event, the newest first; of a flood the newest only. */
  readonly refusals: readonly RefusedWrite[];
}

export interface Hello {
  readonly principal: string;
  /** Whether leases and nodes can be shown: the gateway knows the lock's nodes. */
  readonly knowsLock: boolean;
  /** What was counted in each of the last seconds, the oldest first. */
  readonly writes: readonly WriteCounts[];
  /** Newest first. */
  readonly refusals: readonly RefusedWrite[];
  /** From then on the gateway has all that it refused. */
  readonly refusedSince: number;
}

/** Writes by what became of them; absent is 0. */
export type WriteCounts = Readonly<Record<string, number>>;

export interface State {
  readonly at: number;
  readonly fleet: FleetNews | undefined;
  readonly leases: LeasesNews | undefined;
  /** Of the last second; undefined where none has ended. */
  readonly writes: WriteCounts | undefined;
  /** The checks of /ready that fail. */
  readonly faults: readonly Fault[];
}

export interface Fault {
  readonly check: string;
  readonly detail: string;
  /** For how long it has been seen to fail. */
  readonly forMs: number;
}

export interface FleetNews {
  readonly nodes: readonly NodeNews[];
  readonly votes: number;
  readonly quorum: number;
  /** Why nothing is known of the nodes. */
  readonly trouble: string | undefined;
}

export interface NodeNews {
  readonly node: string;
  readonly address: string;
  readonly state: "votes" | "waits" | "silent";
  /** For how long it has been seen in this state. */
  readonly sinceMs: number;
  /** For longer than that: it was so when the gateway looked first. */
  readonly isOlder: boolean;
  /** Of one that waits: when it can vote at the earliest, where known. */
  readonly readyInMs: number | undefined;
  /** Why it does not vote, or what is worth a word. */
  readonly reason: string | undefined;
  readonly latencyMs: number | undefined;
}

export interface LeasesNews {
  /** Undefined before the first look. */
  readonly held: number | undefined;
  /** How many wait, for how many leases. */
  readonly waiting: number;
  readonly contended: number;
  /** Whether there are more than were counted. */
  readonly more: boolean;
  /** Why the last look failed. */
  readonly trouble: string | undefined;
}

export interface RefusedWrite {
  /** Of the last of those that were equal. Rises by one with each refusal of this gateway. */
  readonly id: number;
  readonly at: number;
  /** When the first of them was refused, and how many there were. */
  readonly firstAt: number;
  readonly times: number;
  readonly resource: string;
  /** Of the problem that was answered. */
  readonly code: string;
  readonly presentedToken: number | null;
  readonly currentToken: number | null;
  /** Whose credential it was, and from where it came. */
  readonly caller: string;
  readonly address: string;
  /** Under which the log has it. */
  readonly requestId: string;
}

export interface Trouble {
  readonly trouble: string;
}

/** Which part of the leases is asked for. */
export interface LeaseQuestion {
  /** Part of the name or of the holder, in any case of letters. */
  readonly search: string;
  readonly order: "waiting" | "name" | "ends" | "held";
  readonly from: number;
  readonly count: number;
}

export interface LeasePage {
  /** How many match. */
  readonly total: number;
  readonly from: number;
  readonly rows: readonly LeaseRow[];
}

export interface LeaseRow {
  readonly resource: string;
  /** Free: it was given back since the last look at all leases. */
  readonly state: "held" | "free" | "split" | "unknown";
  readonly holder: string;
  readonly token: number;
  /** Below 0: it should have ended by now. */
  readonly endsInMs: number | undefined;
  /** At least so long ago it was taken. */
  readonly seenForMs: number;
  /** How many wait for it. */
  readonly waiting: number;
  /** So long ago it was seen so last; the nodes cannot be asked now. */
  readonly oldMs?: number;
}

/** Everything about one resource; never its document. */
export interface ResourceView {
  readonly at: number;
  /** Undefined where the gateway does not know the lock's nodes. */
  readonly lock: LockView | Trouble | undefined;
  /** Undefined where there is none. */
  readonly fence: FenceView | Trouble | undefined;
  /** Undefined where none is kept. */
  readonly history: HistoryView | Trouble | undefined;
  /** Newest first. */
  readonly refusals: readonly RefusedWrite[];
  readonly refusedSince: number;
  /** Whether this caller may take the lock away. */
  readonly mayRelease: boolean;
}

export interface LockView {
  readonly state: LeaseRow["state"];
  readonly holder: string | null;
  readonly token: number;
  readonly endsInMs: number | null;
  readonly seenForMs: number | null;
  readonly waiting: number;
  /** Where too few nodes answer: who was last seen to hold it. */
  readonly last: LastHolder | undefined;
  readonly nodes: readonly NodeAnswer[];
}

export interface LastHolder {
  readonly holder: string;
  readonly token: number;
  readonly oldMs: number;
}

export interface NodeAnswer {
  readonly node: string;
  /** Null: free, or no answer. */
  readonly holder: string | null;
  readonly endsInMs: number | null;
  readonly token: number | null;
  /** Why there is no answer. */
  readonly silent: string | undefined;
}

export interface FenceView {
  readonly token: number;
  readonly rev: number;
  readonly holder: string | null;
  readonly updatedAt: number;
  readonly hasDocument: boolean;
  /** The last time that an operator moved it, also to take the lock away. */
  readonly moved: FenceMoved | undefined;
}

export interface FenceMoved {
  readonly at: number;
  readonly by: string;
  readonly reason: string;
  readonly previousToken: number | null;
  readonly token: number;
}

export interface HistoryView {
  /** Newest first. */
  readonly rows: readonly HistoryRow[];
  /** Of the last tokens, the newest first: among the last thousands of writes. */
  readonly tokens: readonly { readonly token: number; readonly writes: number; readonly firstAt: number; readonly lastAt: number }[];
}

export interface HistoryRow {
  readonly rev: number;
  readonly op: string;
  readonly token: number;
  readonly holder: string | null;
  readonly at: number;
}

/** Takes a lock away from the lease that the operator was shown, by its token. */
export interface ReleaseOrder {
  readonly resource: string;
  readonly reason: string;
  readonly token: number;
}

export interface Released {
  readonly released: true;
  readonly removed: readonly string[];
  /** Every later lease has a higher token. */
  readonly fence: number;
  /** Whether the store refuses lower tokens from now on; otherwise why not. */
  readonly sealed: true | string;
}

/** Somebody else holds it by now, or nobody does. */
export interface NotReleased {
  readonly released: false;
  readonly because: string;
}
