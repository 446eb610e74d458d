// For unit tests of code that uses the lock: a locker without Redis. It is the lock itself, over a
// node in memory instead of a fleet; a suite of tests is run over both. Its time is that of the
// global timers and `Date` at the moment of each call, so a test framework's fake timers move it.
import { QuorumLocker } from "../locker.js";
import { type LockerOptions, readPolicy } from "../options/policy.js";
import { liveClock } from "../platform/clock.js";
import type { Fleet, FleetState, NodeReport } from "../protocol/fleet.js";
import type { Locker } from "../protocol/locker.js";
import { FakeMemory, FakeNode } from "./fake-node.js";

const MAX_TTL_MS = 60_000;
const FAKE_REPORT: NodeReport = {
  latencyMs: 0,
  clockAheadMs: 0,
  clockUncertaintyMs: 0,
  version: "fake",
  durable: false,
  memory: { usedBytes: 0, evictionPolicy: "noeviction" },
};

/** The servers of a test: lockers that are given the same ones contend with each other. */
export class FakeServers {
  /** False: every call fails as it does when no server can be reached (`LOCK_NO_QUORUM`). */
  reachable = true;
  readonly #memories = new Map<string, FakeMemory>();

  /**
   * Takes the lock away from its holder, as when its time had run out on the servers. The holder
   * learns of it at its next renewal.
   */
  lose(resource: string, namespace = "palisade"): void {
    this.memoryOf(namespace).locks.delete(resource);
  }

  /** @internal */
  memoryOf(namespace: string): FakeMemory {
    const memory = this.#memories.get(namespace) ?? new FakeMemory();
    this.#memories.set(namespace, memory);
    return memory;
  }
}

/** Options of createLocker, with servers in memory in place of nodes. */
export interface FakeLockerOptions extends Omit<LockerOptions, "nodes" | "fleets" | "quorum"> {
  /** Default: servers that no other locker has. */
  readonly servers?: FakeServers;
}

/**
 * A locker for unit tests: no Redis, no network, and otherwise as createLocker's. Tokens rise from
 * 1. `doctor` finds nothing; members cannot be changed.
 */
export function createFakeLocker({ servers = new FakeServers(), ...options }: FakeLockerOptions = {}): Locker {
  const policy = readPolicy({ ...options, nodes: ["redis://127.0.0.1:6379"] });
  const clock = liveClock();
  const memory = servers.memoryOf(policy.namespace);
  const node = new FakeNode(memory, clock, () => servers.reachable);
  return new QuorumLocker(fleetOf(node, memory, { servers, maxTtlMs: policy.maxTtlMs ?? MAX_TTL_MS }), policy, clock);
}

function fleetOf(
  node: FakeNode,
  memory: FakeMemory,
  { servers, maxTtlMs }: { readonly servers: FakeServers; readonly maxTtlMs: number },
): Fleet {
  const { name } = node;
  const cause = "ECONNREFUSED";
  const state = (): FleetState => ({
    admitted: servers.reachable ? [name] : [],
    quarantined: [],
    unreachable: servers.reachable ? [] : [{ node: name, cause }],
    refusal: undefined,
    maxTtlMs,
  });
  const asked = <Answer>(answer: () => Answer) =>
    servers.reachable
      ? ({ kind: "answered", node: name, answer: answer() } as const)
      : ({ kind: "unreachable", node: name, cause } as const);
  const unchangeable = async (): Promise<never> => {
    throw new TypeError("the members of a fake cannot be changed");
  };
  return {
    nodes: [node],
    maxTtlMs,
    refusal: undefined,
    onChange: () => {},
    state,
    settled: async () => state(),
    listResources: async () => [asked(() => [...memory.tokens.keys()])],
    listHeld: async (prefix) => [asked(() => ({ leases: node.leases(prefix), steps: 1, isWhole: true }))],
    report: async () => [asked(() => FAKE_REPORT)],
    mark: async (mark, atLeast) => [
      asked(() => {
        memory.marks.set(mark, Math.max(atLeast, memory.marks.get(mark) ?? 0));
        return memory.marks.get(mark) ?? 0;
      }),
    ],
    members: () => undefined,
    reconfigure: unchangeable,
    foundWithout: unchangeable,
    probe: async () => [],
    listing: {
      id: undefined,
      list: undefined,
      timesMet: 0,
      isBackSince: () => false,
      lookAgain: async () => {},
      standing: async () => undefined,
      change: unchangeable,
    },
    close: () => node.close(),
  };
}
