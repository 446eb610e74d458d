// Looks at the lock's nodes and leases, and answers from the last look. While nobody watches it looks
// seldom, so that it knows since when a node is silent and a lease is held, also when somebody comes.
// After a look at all leases it rests 150 times as long as that kept a processor busy, so that it
// costs nodes and gateway less than a hundredth of their time, however many leases there are.
import { setTimeout as sleep } from "node:timers/promises";
import type { HeldResource, InspectBallot, NodeInspection } from "@palisade/lock";
import { type Caller, visibleTo, type WatchedLock } from "./gateway.js";
import type {
  FleetNews,
  LastHolder,
  LeasePage,
  LeaseQuestion,
  LeaseRow,
  LeasesNews,
  LockView,
  NodeAnswer,
  NodeNews,
  Trouble,
} from "./messages.js";

/** Nobody has asked for so long: nobody watches any more. */
const WATCHED_FOR_MS = 5_000;
const NODES_EVERY_MS = 1_000;
const UNWATCHED_EVERY_MS = 10_000;
/** A clock that is further off is worth a word. */
const SKEW_MS = 1_000;
const LEASES_EVERY_MS = 1_000;
const LEASES_AT_LEAST_EVERY_MS = 60_000;
const REST = 150;
/** Measured: of the gateway or of a node, whichever works longer. */
const STEP_MS = 0.3;
const LEASE_MS = 0.025;
/** Of a look that is older than this the rows on the screen are asked for again. */
const FRESH_MS = 1_500;

interface SeenNode {
  readonly inspected: NodeInspection;
  readonly state: NodeNews["state"];
  /** Since when, on the clock of `performance`, as all moments here. */
  readonly since: number;
  /** It was so at the first look already. */
  readonly isOlder: boolean;
  /** Its last answer came too late. */
  readonly isLate: boolean;
}

interface SeenLease extends Pick<HeldResource, "resource" | "state" | "token" | "waiting"> {
  readonly holder?: string | undefined;
  readonly endsAt: number | undefined;
  /** When this lease was seen first, and when last. */
  readonly seenAt: number;
  readonly at: number;
}

type Order = LeaseQuestion["order"];
const nowhere = Number.POSITIVE_INFINITY;
const orders: Readonly<Record<Exclude<Order, "name">, (a: SeenLease, b: SeenLease) => number>> = {
  ends: (a, b) => (a.endsAt ?? nowhere) - (b.endsAt ?? nowhere),
  held: (a, b) => a.seenAt - b.seenAt,
  waiting: (a, b) => b.waiting - a.waiting,
};

/** All leases as they were then; each order is made once, for all who ask. */
interface LeaseLook {
  readonly byName: readonly SeenLease[];
  readonly sorted: Map<Order, readonly SeenLease[]>;
  readonly more: boolean;
  readonly at: number;
}

export class LockWatch {
  /** Called when a node has changed its state. */
  onNews = (): void => {};
  readonly #lock: WatchedLock;
  #watchedAt = Number.NEGATIVE_INFINITY;
  #isClosed = false;
  #resting = new AbortController();
  #nodes: readonly SeenNode[] = [];
  #nodesAt = 0;
  #nodesTrouble: string | undefined;
  #leases: LeaseLook | undefined;
  /** By name, as each was last seen to be held: in the look at all, or alone since. */
  #seen = new Map<string, SeenLease>();
  #leasesTrouble: string | undefined;
  #leasesRestMs = 0;

  constructor(lock: WatchedLock) {
    this.#lock = lock;
    void this.#again(() => this.#lookAtNodes());
    void this.#again(() => this.#lookAtLeases());
  }

  get #isWatched(): boolean {
    return performance.now() - this.#watchedAt < WATCHED_FOR_MS;
  }

  /** Called by everybody who watches, at least every five seconds. */
  watched(): void {
    const isFirst = !this.#isWatched;
    this.#watchedAt = performance.now();
    if (isFirst) this.lookAgain();
  }

  /** What was changed here is looked at soon. */
  lookAgain(): void {
    this.#resting.abort();
    this.#resting = new AbortController();
  }

  close(): void {
    this.#isClosed = true;
    this.lookAgain();
  }

  get fleet(): FleetNews {
    const nodes = this.#nodesTrouble === undefined ? this.#nodes.map((seen) => nodeNews(seen, this.#nodesAt)) : [];
    const votes = nodes.filter(({ state }) => state === "votes").length;
    return { nodes, votes, quorum: Math.floor(nodes.length / 2) + 1, trouble: this.#nodesTrouble };
  }

  /** Of those that the caller may see. */
  leasesFor(caller: Caller): LeasesNews {
    const { byName, more = false } = this.#leases ?? {};
    const visible = caller.may("observe", "") ? byName : byName?.filter(visibleTo(caller));
    const contended = visible?.filter(({ waiting }) => waiting > 0) ?? [];
    const waiting = contended.reduce((sum, lease) => sum + lease.waiting, 0);
    return { held: visible?.length, waiting, contended: contended.length, more, trouble: this.#leasesTrouble };
  }

  /** Never more than fits on a screen, so that ten thousand cost no more than a hundred. */
  async page({ search, order, from, count }: LeaseQuestion, caller: Caller): Promise<LeasePage> {
    this.watched();
    const look = this.#leases;
    if (look === undefined) return { total: 0, from, rows: [] };
    const [all, isVisible, wanted] = [inOrder(look, order), visibleTo(caller), search.toLowerCase()];
    const isWanted = (lease: SeenLease): boolean =>
      isVisible(lease) && `${lease.resource}\n${lease.holder ?? ""}`.toLowerCase().includes(wanted);
    const matches = wanted === "" && caller.may("observe", "") ? all : all.filter(isWanted);
    const isFresh = performance.now() - look.at < FRESH_MS;
    const shown = matches.slice(from, from + count);
    const rows = await Promise.all(shown.map((lease) => (isFresh ? rowOf(lease, lease) : this.#askedAgain(lease))));
    return { total: matches.length, from, rows };
  }

  /** What each node says of it now. */
  async lockView(resource: string): Promise<LockView | Trouble> {
    try {
      const inspected = await this.#lock.inspect(resource);
      const { state, holder = null, token, remainingMs: endsInMs = null, waiting, ballots } = inspected;
      if (state === "held") this.#seen.set(resource, this.#seenAgain({ ...inspected, state }, performance.now()));
      if (state === "free") this.#seen.delete(resource);
      const seen = this.#seen.get(resource);
      const seenForMs = state === "held" && seen !== undefined ? performance.now() - seen.seenAt : null;
      const last = state === "unknown" && seen !== undefined ? lastOf(seen) : undefined;
      return { state, holder, token, endsInMs, seenForMs, waiting, last, nodes: ballots.map(answerOf) };
    } catch (error) {
      return { trouble: messageOf(error) };
    }
  }

  async #again(look: () => Promise<number>): Promise<void> {
    while (!this.#isClosed) await sleep(await look(), undefined, { ref: false, signal: this.#resting.signal }).catch(() => undefined);
  }

  async #lookAtNodes(): Promise<number> {
    try {
      const inspected = await this.#lock.fleet.nodes();
      const before = new Map(this.#nodes.map((seen) => [seen.inspected.node, seen]));
      this.#nodesAt = performance.now();
      this.#nodes = inspected.map((one) => seenNode(one, before.get(one.node)));
      this.#nodesTrouble = undefined;
      if (this.#nodes.some(({ inspected: { node }, state }) => before.get(node)?.state !== state)) this.onNews();
    } catch (error) {
      this.#nodesTrouble = messageOf(error);
    }
    return this.#isWatched ? NODES_EVERY_MS : UNWATCHED_EVERY_MS;
  }

  async #lookAtLeases(): Promise<number> {
    try {
      const { held, more, steps } = await this.#lock.fleet.listHeld();
      const at = performance.now();
      const byName = held.map((lease) => this.#seenAgain(lease, at));
      this.#seen = new Map(byName.map((lease) => [lease.resource, lease]));
      this.#leases = { byName, sorted: new Map(), more, at };
      this.#leasesTrouble = undefined;
      const costMs = steps * STEP_MS + held.length * LEASE_MS;
      this.#leasesRestMs = REST * costMs;
    } catch (error) {
      this.#leasesTrouble = messageOf(error);
    }
    if (!this.#isWatched) return Math.max(UNWATCHED_EVERY_MS, this.#leasesRestMs);
    return Math.min(LEASES_AT_LEAST_EVERY_MS, Math.max(LEASES_EVERY_MS, this.#leasesRestMs));
  }

  /** The lease that was known, or a later one, which has a higher token. While nodes are silent one may seem lower. */
  #seenAgain({ resource, state, holder, token, waiting, remainingMs }: HeldResource, at: number): SeenLease {
    const known = this.#seen.get(resource);
    const lease = known?.holder === holder && known !== undefined && token <= known.token ? known : { token, seenAt: at };
    return { resource, state, holder, waiting, endsAt: endOf(remainingMs, at), token: lease.token, seenAt: lease.seenAt, at };
  }

  /** Without a quorum the last holder that was seen stays, and is said to be old. */
  async #askedAgain(lease: SeenLease): Promise<LeaseRow> {
    const now = await this.#lock.inspect(lease.resource).catch(() => undefined);
    if (now === undefined || now.state === "unknown") return { ...rowOf(lease, lease), oldMs: lastOf(lease).oldMs };
    return rowOf(lease, { ...now, endsAt: endOf(now.remainingMs, performance.now()) });
  }
}

/** One answer that came too late is no silence: the gateway itself may have been busy. */
function seenNode(inspected: NodeInspection, before: SeenNode | undefined): SeenNode {
  const { state, reason = "" } = inspected;
  if (before?.state === state) return { ...before, inspected, isLate: false };
  if (before !== undefined && !before.isLate && state === "silent" && reason.startsWith("TIMEOUT"))
    return { ...before, inspected, isLate: true };
  return { inspected, state, since: performance.now(), isOlder: before === undefined, isLate: false };
}

function nodeNews({ inspected, state, since, isOlder }: SeenNode, lookedAt: number): NodeNews {
  const { node, address, readyInMs, latencyMs } = inspected;
  const now = performance.now();
  return {
    node,
    address,
    state,
    sinceMs: Math.round(now - since),
    isOlder,
    readyInMs: readyInMs && Math.max(0, Math.round(readyInMs - (now - lookedAt))),
    reason: inspected.reason ?? worryAbout(inspected),
    latencyMs: latencyMs && Math.round(latencyMs * 100) / 100,
  };
}

/** What doctor() would say of a node that votes. */
function worryAbout({ clockAheadMs = 0, clockUncertaintyMs = 0, memory }: NodeInspection): string | undefined {
  const off = Math.abs(clockAheadMs);
  if (off - clockUncertaintyMs > SKEW_MS) return `clock ${(off / 1_000).toFixed(1)} s ${clockAheadMs > 0 ? "ahead" : "behind"}`;
  if (memory !== undefined && memory.evictionPolicy !== "noeviction") return `may evict: ${memory.evictionPolicy}`;
  return undefined;
}

function endOf(remainingMs: number | undefined, at: number): number | undefined {
  return remainingMs === undefined ? undefined : at + remainingMs;
}

function lastOf({ holder = "", token, at }: SeenLease): LastHolder {
  return { holder, token, oldMs: Math.round(performance.now() - at) };
}

function inOrder(look: LeaseLook, order: Order): readonly SeenLease[] {
  if (order === "name") return look.byName;
  const known = look.sorted.get(order) ?? look.byName.toSorted(orders[order]);
  look.sorted.set(order, known);
  return known;
}

/** Another token is another lease, which began after the look. */
function rowOf(lease: SeenLease, now: Pick<LeaseRow, "state" | "token" | "waiting"> & Pick<SeenLease, "holder" | "endsAt">): LeaseRow {
  const { state, holder = "", token, waiting, endsAt } = now;
  const at = performance.now();
  const endsInMs = endsAt && Math.round(endsAt - at);
  const seenForMs = token <= lease.token ? Math.round(at - lease.seenAt) : 0;
  return { resource: lease.resource, state, holder, token, endsInMs, seenForMs, waiting };
}

function answerOf(ballot: InspectBallot): NodeAnswer {
  const { node } = ballot;
  if (ballot.kind === "seen") return { node, holder: ballot.holder, endsInMs: ballot.remainingMs, token: ballot.token, silent: undefined };
  const silent = ballot.kind === "unreachable" ? ballot.cause : (ballot.reason ?? "it may have forgotten what it stored");
  return { node, holder: null, endsInMs: null, token: null, silent };
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
