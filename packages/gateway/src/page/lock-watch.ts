// Looks at the lock's nodes and leases for as long as somebody watches, and remembers the last
// look. After a look it rests 150 times as long as that kept a processor busy, so that it costs
// nodes and gateway less than a hundredth of their time, however many leases there are.
import type { HeldResource, Locker, NodeInspection } from "@palisade/lock";
import type { FleetNews, FleetVotes, NodeNews } from "./messages.js";

export type WatchedLock = Pick<Locker, "nodes" | "listHeld" | "inspect" | "forceRelease">;

/** Nobody has asked for so long: nobody watches any more. */
const WATCHED_FOR_MS = 5_000;
const NODES_EVERY_MS = 1_000;
/** A clock that is further off is worth a word. */
const SKEW_MS = 1_000;
const LEASES_EVERY_MS = 1_000;
const LEASES_AT_LEAST_EVERY_MS = 60_000;
const REST = 150;
/** Measured: of the gateway or of a node, whichever works longer. */
const STEP_MS = 0.3;
const LEASE_MS = 0.025;

export interface SeenLease extends HeldResource {
  /** On the clock of `performance`. */
  readonly endsAt: number | undefined;
  readonly seenAt: number;
}

export interface LeaseLook {
  readonly look: number;
  readonly leases: readonly SeenLease[];
  readonly more: boolean;
  readonly at: number;
}

interface NodeState {
  readonly state: NodeNews["state"];
  readonly at: number;
}

export class LockWatch {
  readonly #lock: WatchedLock;
  #onNews = (): void => {};
  #watchedAt = Number.NEGATIVE_INFINITY;
  #isClosed = false;
  /** Of the two loops. */
  readonly #running = new Set<"nodes" | "leases">();
  #fleet: Omit<FleetNews, "nodes" | "fleets"> & { readonly nodes: readonly NodeInspection[]; readonly at: number } = { nodes: [], at: 0 };
  #states = new Map<string, NodeState>();
  readonly #late = new Set<string>();
  #leases: LeaseLook | undefined;
  #leasesTrouble: string | undefined;
  #looks = 0;
  /** Of the last look. */
  #costMs = 0;
  #wake: (() => void) | undefined;

  constructor(lock: WatchedLock) {
    this.#lock = lock;
  }

  /** Called by everybody who watches, at least every five seconds. */
  watched(): void {
    this.#watchedAt = performance.now();
    this.#run("nodes", async () => {
      await this.#lookAtNodes();
      return NODES_EVERY_MS;
    });
    this.#run("leases", () => this.#lookAtLeases());
  }

  /** The listener is called when a node has changed its state. */
  onNews(listener: () => void): void {
    this.#onNews = listener;
  }

  get fleet(): FleetNews {
    const now = performance.now();
    const { nodes, at, ...rest } = this.#fleet;
    const news = nodes.map((inspected): NodeNews => {
      const { node, address, readyInMs, latencyMs } = inspected;
      const known = this.#states.get(node);
      const reason = inspected.reason ?? worryAbout(inspected);
      return {
        node,
        address,
        state: known?.state ?? inspected.state,
        sinceMs: Math.round(now - (known?.at ?? now)),
        ...(readyInMs === undefined ? {} : { readyInMs: Math.max(0, Math.round(readyInMs - (now - at))) }),
        ...(reason === undefined ? {} : { reason }),
        ...(latencyMs === undefined ? {} : { latencyMs: Math.round(latencyMs * 100) / 100 }),
      };
    });
    const fleets = votesIn(nodes.map(({ fleet }, i) => ({ fleet, isVoter: news[i]?.state === "votes" })));
    return { ...rest, nodes: news, fleets };
  }

  /** Undefined before the first look. */
  get leases(): LeaseLook | undefined {
    return this.#leases;
  }

  /** Why the last look failed. */
  get leasesTrouble(): string | undefined {
    return this.#leasesTrouble;
  }

  seenForMs(resource: string, token: number): number | null {
    const seen = this.#leases?.leases.find((lease) => lease.resource === resource && lease.token === token);
    return seen === undefined ? null : performance.now() - seen.seenAt;
  }

  /** What was changed here is looked at soon. */
  lookAgain(): void {
    this.#wake?.();
  }

  close(): void {
    this.#isClosed = true;
    this.#wake?.();
  }

  #run(name: "nodes" | "leases", look: () => Promise<number>): void {
    if (this.#running.has(name) || this.#isClosed) return;
    this.#running.add(name);
    void (async () => {
      while (!this.#isClosed && performance.now() - this.#watchedAt < WATCHED_FOR_MS) await this.#rest(name, await look());
      this.#running.delete(name);
      // What was seen long ago says nothing of how long a lease is held.
      if (name === "leases") this.#leases = undefined;
      else this.#states = new Map();
    })();
  }

  #rest(name: "nodes" | "leases", ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      timer.unref();
      if (name === "leases")
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
    });
  }

  async #lookAtNodes(): Promise<void> {
    try {
      const nodes = await this.#lock.nodes();
      const at = performance.now();
      const states = new Map(nodes.map((node) => [node.node, this.#stateOf(node, at)]));
      const isNews = [...states].some(([node, { state }]) => this.#states.get(node)?.state !== state);
      this.#states = states;
      this.#fleet = { nodes, at };
      if (isNews) this.#onNews();
    } catch (error) {
      this.#fleet = { nodes: [], at: 0, trouble: messageOf(error) };
    }
  }

  /** One answer that came too late is no silence: the gateway itself may have been busy. */
  #stateOf({ node, state, reason = "" }: NodeInspection, at: number): NodeState {
    const before = this.#states.get(node);
    if (before?.state === state) return before;
    if (state === "silent" && reason.startsWith("TIMEOUT") && before !== undefined && !this.#late.has(node)) {
      this.#late.add(node);
      return before;
    }
    this.#late.delete(node);
    return { state, at };
  }

  async #lookAtLeases(): Promise<number> {
    try {
      const { held, more, steps } = await this.#lock.listHeld();
      const at = performance.now();
      this.#costMs = steps * STEP_MS + held.length * LEASE_MS;
      const before = new Map((this.#leases?.leases ?? []).map((lease) => [lease.resource, lease]));
      const leases = held.map((lease): SeenLease => {
        const known = before.get(lease.resource);
        const isSame = known?.token === lease.token && known.holder === lease.holder;
        const endsAt = lease.remainingMs === undefined ? undefined : at + lease.remainingMs;
        return { ...lease, endsAt, seenAt: isSame ? known.seenAt : at };
      });
      this.#looks += 1;
      this.#leases = { look: this.#looks, leases, more, at };
      this.#leasesTrouble = undefined;
    } catch (error) {
      this.#leasesTrouble = messageOf(error);
    }
    return Math.min(LEASES_AT_LEAST_EVERY_MS, Math.max(LEASES_EVERY_MS, REST * this.#costMs));
  }
}

function votesIn(nodes: readonly { readonly fleet: string | undefined; readonly isVoter: boolean }[]): readonly FleetVotes[] {
  return [...new Set(nodes.map(({ fleet }) => fleet))].map((name) => {
    const members = nodes.filter(({ fleet }) => fleet === name);
    const votes = members.filter(({ isVoter }) => isVoter).length;
    const quorum = Math.floor(members.length / 2) + 1;
    return { ...(name === undefined ? {} : { name }), votes, size: members.length, quorum };
  });
}

/** What doctor() would say of a node that votes. */
function worryAbout({ clockAheadMs = 0, clockUncertaintyMs = 0, memory }: NodeInspection): string | undefined {
  const off = Math.abs(clockAheadMs);
  if (off - clockUncertaintyMs > SKEW_MS) return `clock ${(off / 1_000).toFixed(1)} s ${clockAheadMs > 0 ? "ahead" : "behind"}`;
  if (memory !== undefined && memory.evictionPolicy !== "noeviction") return `may evict: ${memory.evictionPolicy}`;
  return undefined;
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
