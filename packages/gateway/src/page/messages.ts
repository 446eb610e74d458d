// What the operator's page is told, as JSON: shared with the page itself. Times are in milliseconds
// from the moment of the message, because the clocks of gateway and browser differ; moments are
// Unix times of the gateway.

/** The first event of the stream, `hello`. */
export interface Hello {
  readonly at: number;
  readonly version: string;
  readonly principal: string;
  /** Whether leases and nodes can be shown: the gateway knows the lock's nodes. */
  readonly knowsLock: boolean;
  readonly keepsHistory: boolean;
  readonly keepsRefusals: boolean;
  /** What was counted in each of the last seconds, the oldest first. */
  readonly writes: readonly WriteCounts[];
  readonly refusals: RefusalNews;
}

/** Writes by what became of them; absent is 0. */
export type WriteCounts = Readonly<Record<string, number>>;

/** The event `state`: once a second, and when a node has changed its state. */
export interface State {
  readonly at: number;
  readonly fleet: FleetNews | undefined;
  readonly leases: LeasesNews | undefined;
  /** Of the last second; absent where none has ended. */
  readonly writes?: WriteCounts;
}

export interface FleetNews {
  readonly nodes: readonly NodeNews[];
  /** Of each fleet; where there are several, with their names. */
  readonly fleets: readonly FleetVotes[];
  /** Why nothing is known of the nodes. */
  readonly trouble?: string;
}

export interface FleetVotes {
  readonly name?: string;
  readonly votes: number;
  readonly size: number;
  readonly quorum: number;
}

export interface NodeNews {
  readonly node: string;
  readonly address: string;
  readonly state: "votes" | "waits" | "silent";
  /** For how long it has been in this state, as far as it was watched. */
  readonly sinceMs: number;
  /** Of one that waits: when it can vote at the earliest, where known. */
  readonly readyInMs?: number;
  /** Why it does not vote, or what is worth a word. */
  readonly reason?: string;
  readonly latencyMs?: number;
}

export interface LeasesNews {
  /** Counts the looks: another number, and the rows may be others. */
  readonly look: number;
  readonly held: number;
  readonly more: boolean;
  /** How long ago the last look ended; undefined before the first. */
  readonly ageMs: number | undefined;
  /** Why there was none. */
  readonly trouble?: string;
}

/** A part of the leases, as it was asked for. */
export interface LeasePage {
  readonly look: number;
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
}

/** The event `refusals`, and its beginning in `hello`. */
export interface RefusalNews {
  /** The newest, newest first. */
  readonly entries: readonly RefusalRow[];
  /** How many there were since the last event, also those that are not among the entries. */
  readonly count: number;
}

export interface RefusalRow {
  /** Rises with each refusal of this gateway. */
  readonly id: number;
  readonly at: number;
  readonly resource: string;
  readonly code: string;
  readonly presentedToken: number | null;
  readonly currentToken: number | null;
  readonly caller: string;
  /** Of the connection that brought it. */
  readonly address: string;
  readonly requestId: string;
}

/** Everything about one resource. */
export interface ResourceView {
  readonly resource: string;
  readonly at: number;
  /** Absent where the gateway does not know the lock's nodes. */
  readonly lock: LockView | Trouble | undefined;
  /** Absent where there is none. */
  readonly fence: FenceView | Trouble | undefined;
  /** Newest first; absent where none is kept. */
  readonly history: readonly HistoryRow[] | Trouble | undefined;
  /** Newest first. */
  readonly refusals: readonly RefusalRow[];
  /** Whether this caller may take the lock away. */
  readonly mayRelease: boolean;
}

export interface Trouble {
  readonly trouble: string;
}

export interface LockView {
  readonly state: "held" | "free" | "split" | "unknown";
  readonly holder: string | null;
  readonly token: number;
  readonly endsInMs: number | null;
  readonly seenForMs: number | null;
  readonly nodes: readonly NodeAnswer[];
}

export interface NodeAnswer {
  readonly node: string;
  /** Null: free, or no answer. */
  readonly holder: string | null;
  readonly endsInMs: number | null;
  readonly token: number | null;
  /** Why there is no answer. */
  readonly silent?: string;
}

export interface FenceView {
  readonly token: number;
  readonly rev: number;
  readonly seq: number;
  readonly holder: string | null;
  readonly updatedAt: number;
  readonly hasDocument: boolean;
}

export interface HistoryRow {
  readonly rev: number;
  readonly op: string;
  readonly token: number;
  readonly holder: string | null;
  readonly at: number;
}

/** What a forced release did. */
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
