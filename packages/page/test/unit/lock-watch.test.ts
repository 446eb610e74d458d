// What the gateway knows of nodes and leases when the first browser comes, by a clock that stands still
// until it is moved.
import type { HeldResource, InspectBallot, Inspection, NodeInspection } from "@palisade/lock";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { LockWatch } from "../../src/lock-watch.js";

vi.mock("node:timers/promises", () => ({
  setTimeout: (ms: number, _value: unknown, { signal }: { signal: AbortSignal }) =>
    new Promise<void>((resolve, reject) => {
      const over = new AbortController();
      const timer = setTimeout(() => {
        over.abort();
        resolve();
      }, ms);
      const end = () => {
        clearTimeout(timer);
        reject(new Error("aborted"));
      };
      signal.addEventListener("abort", end, { once: true, signal: over.signal });
    }),
}));
beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] }));
afterEach(() => void vi.useRealTimers());

const all = { id: "all", requestId: "", may: () => true, isStillAllowed: async () => true };
const everything = { search: "", order: "waiting", from: 0, count: 100 } as const;
const unreachable: InspectBallot = { kind: "unreachable", node: "n1", cause: "ECONNREFUSED", unsent: true };

/** The lock as it is now, by what a test assigns. */
function fakeLock() {
  const lock = {
    silent: new Set<string>(),
    held: [] as HeldResource[],
    hasQuorum: true,
    looks: { nodes: 0, leases: 0 },
    inspect: async (resource: string): Promise<Inspection> => {
      const found = lock.held.find((one) => one.resource === resource);
      if (!lock.hasQuorum) return { resource, state: "unknown", token: 0, waiting: 0, ballots: [unreachable] };
      return found === undefined ? { resource, state: "free", token: 0, waiting: 0, ballots: [] } : { ...found, ballots: [] };
    },
    fleet: {
      nodes: async (): Promise<readonly NodeInspection[]> => {
        lock.looks.nodes += 1;
        return ["n1", "n2", "n3"].map((node) => ({ node, address: node, state: lock.silent.has(node) ? "silent" : "votes" }));
      },
      listHeld: async () => {
        lock.looks.leases += 1;
        if (!lock.hasQuorum) throw new Error("1 of 3 nodes answered");
        return { held: lock.held, more: false, silent: [], steps: 1 };
      },
      forceRelease: () => Promise.reject(new Error("not here")),
    },
  };
  return lock;
}

function held(resource: string, token: number, more: Partial<HeldResource> = {}): HeldResource {
  return { resource, state: "held", holder: "worker-7", remainingMs: 60_000, token, waiting: 0, ...more };
}

const minutes = (count: number) => vi.advanceTimersByTimeAsync(count * 60_000);

test("a node that died, and a lease that was taken, while no browser was open are known by when that was", async ({ onTestFinished }) => {
  const lock = fakeLock();
  const watch = new LockWatch(lock);
  onTestFinished(() => watch.close());
  await minutes(1);
  lock.silent.add("n2");
  lock.held = [held("r", 7)];
  await minutes(20);
  watch.watched();
  await vi.advanceTimersByTimeAsync(10);
  const [, node] = watch.fleet.nodes;
  expect(node).toMatchObject({ state: "silent", isOlder: false });
  expect(node?.sinceMs).toBeGreaterThan(19.8 * 60_000);
  const [row] = (await watch.page(everything, all)).rows;
  expect(row?.seenForMs).toBeGreaterThan(19.8 * 60_000);
  expect(row?.seenForMs).toBeLessThanOrEqual(20 * 60_000);
});

test("what was so when the gateway looked first is said to be older than that", async ({ onTestFinished }) => {
  const lock = fakeLock();
  lock.silent.add("n2");
  const watch = new LockWatch(lock);
  onTestFinished(() => watch.close());
  await minutes(5);
  expect(watch.fleet.nodes.map(({ state, isOlder }) => [state, isOlder])).toEqual([
    ["votes", true],
    ["silent", true],
    ["votes", true],
  ]);
  lock.silent.clear();
  await minutes(1);
  expect(watch.fleet.nodes[1]).toMatchObject({ state: "votes", isOlder: false });
});

test("while no browser is open it looks at nodes and leases every ten seconds, at many leases less often, and at once when one comes", async ({
  onTestFinished,
}) => {
  const lock = fakeLock();
  const watch = new LockWatch(lock);
  onTestFinished(() => watch.close());
  await minutes(10);
  expect(lock.looks).toEqual({ nodes: 61, leases: 61 });
  watch.watched();
  await vi.advanceTimersByTimeAsync(10);
  expect(lock.looks).toEqual({ nodes: 62, leases: 62 });
  lock.held = Array.from({ length: 40_000 }, (_, n) => held(`r${n}`, n));
  await minutes(1);
  const { leases } = lock.looks;
  await minutes(15);
  expect([lock.looks.leases - leases < 9, lock.looks.leases - leases > 3]).toEqual([true, true]);
  watch.close();
  const last = { ...lock.looks };
  await minutes(10);
  expect(lock.looks).toEqual(last);
});

describe("a lease", () => {
  test("is the same while its token seems lower because a node is silent, and another one with a higher token", async ({
    onTestFinished,
  }) => {
    const lock = fakeLock();
    lock.held = [held("r", 7)];
    const watch = new LockWatch(lock);
    onTestFinished(() => watch.close());
    await minutes(5);
    lock.held = [held("r", 6)];
    await minutes(5);
    const seenForMs = async () => (await watch.lockView("r")) as { readonly seenForMs: number };
    expect((await seenForMs()).seenForMs).toBe(10 * 60_000);
    lock.held = [held("r", 8)];
    expect((await seenForMs()).seenForMs).toBe(0);
  });

  test("for which most wait stands first, and how many wait for how many is told of what the caller may see", async ({
    onTestFinished,
  }) => {
    const lock = fakeLock();
    lock.held = [held("a", 1), held("b", 2, { waiting: 2 }), held("c", 3, { waiting: 5 }), held("d", 4)];
    const watch = new LockWatch(lock);
    onTestFinished(() => watch.close());
    await minutes(1);
    expect((await watch.page(everything, all)).rows.map(({ resource }) => resource)).toEqual(["c", "b", "a", "d"]);
    expect(watch.leasesFor(all)).toMatchObject({ held: 4, waiting: 7, contended: 2 });
    const some = { ...all, may: (_action: string, resource: string) => resource === "b" };
    expect(watch.leasesFor(some)).toMatchObject({ held: 1, waiting: 2, contended: 1 });
  });

  test("stays with its last known holder, marked as old, while there is no quorum", async ({ onTestFinished }) => {
    const lock = fakeLock();
    lock.held = [held("r", 7)];
    const watch = new LockWatch(lock);
    onTestFinished(() => watch.close());
    await minutes(1);
    lock.hasQuorum = false;
    await minutes(2);
    expect(await watch.lockView("r")).toMatchObject({ state: "unknown", last: { holder: "worker-7", token: 7, oldMs: 2 * 60_000 } });
    expect((await watch.page(everything, all)).rows).toMatchObject([
      { resource: "r", state: "held", holder: "worker-7", oldMs: 2 * 60_000 },
    ]);
    lock.hasQuorum = true;
    lock.held = [];
    expect(await watch.lockView("r")).toMatchObject({ state: "free", last: undefined });
    lock.hasQuorum = false;
    expect(await watch.lockView("r")).toMatchObject({ state: "unknown", last: undefined });
  });
});
