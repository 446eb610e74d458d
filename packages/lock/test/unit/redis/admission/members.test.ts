// Members that change while leases are taken, held and waited for, in simulated time. Steps of a change
// on real servers: test/real/redis/change.test.ts.
import { expect } from "vitest";
import type { Lease } from "../../../../src/protocol/locker.js";
import { type Story, test } from "../../../simulation/story.js";

const options = { ttlMs: 2_000, maxTtlMs: 2_000, waitMs: 5_000 };
const addressOf = (story: Story, node: number): string => new URL(story.urls[node - 1] ?? "").host;

test(
  "M1 T1 T2 L2 adds, replaces and removes members while leases are taken, and none that is held is lost",
  async (story) => {
    const url = (node: number): string => story.urls[node - 1] ?? "";
    const address = (node: number): string => addressOf(story, node);
    const lockers = [1, 2, 3].map(() => story.actor({ ...options, nodes: [1, 2, 3].map(url) }).locker);
    const [operator] = lockers as [(typeof lockers)[number], ...typeof lockers];
    await operator.ready();
    const held = await operator.acquire("held", { renew: true });
    const last = new Map<string, number>();
    const holding = new Map<string, Lease>();
    let [leases, isOver] = [0, false];
    const work = async (locker: (typeof lockers)[number], resource: string): Promise<void> => {
      while (!isOver) {
        const before = last.get(resource) ?? 0;
        const lease = await locker.acquire(resource).catch(() => undefined);
        if (lease === undefined) continue;
        expect(holding.get(resource)?.held ?? false, `${resource} is held already`).toBe(false);
        expect(lease.token).toBeGreaterThan(before);
        expect(lease.token).not.toBe(last.get(resource));
        last.set(resource, Math.max(lease.token, last.get(resource) ?? 0));
        holding.set(resource, lease);
        leases++;
        await story.pass(60);
        await lease.release();
      }
    };
    const working = Promise.all(lockers.flatMap((locker) => ["a", "b"].map((resource) => work(locker, resource))));
    const sizes: number[] = [];
    const changes = [{ add: url(4) }, { add: url(5) }, { replace: address(1), by: url(6) }, { remove: address(2) }, { remove: address(3) }];
    for (const change of changes) {
      const { members, generation } = await operator.fleet.reconfigure(change);
      sizes.push(members.length);
      expect(generation).toBe(sizes.length + 1);
    }
    isOver = true;
    await working;
    expect(sizes).toEqual([4, 5, 5, 4, 3]);
    expect(leases).toBeGreaterThan(50);
    expect(held.held, String(held.signal.reason)).toBe(true);
    for (const locker of lockers) {
      // Who has asked nothing since learns of the last change when it asks.
      await (await locker.acquire("after")).release();
      await story.eventually(async () => {
        const { generation, members } = await locker.fleet.members();
        expect([generation, [...members].sort()]).toEqual([6, [4, 5, 6].map(address)]);
      });
    }
    // None of the nodes it was configured with is a member any more.
    const late = story.actor({ nodes: [4, 5, 6].map(url) });
    expect((await late.locker.ready()).admitted).toHaveLength(3);
  },
  { nodes: 6 },
);

test(
  "W1 a caller that waits while a member is replaced listens to the newcomer, and has the lock when it is released",
  async (story) => {
    const nodes = story.urls.slice(0, 3);
    const retry = { minDelayMs: 20_000, maxDelayMs: 60_000 };
    const [holder, waiter] = [story.actor({ ...options, nodes }), story.actor({ ...options, retry, nodes })];
    const held = await holder.locker.acquire("r", { renew: true });
    const waiting = waiter.locker.acquire("r", { waitMs: 60_000 });
    await story.untilQueued("r", 1);
    await holder.locker.fleet.reconfigure({ replace: addressOf(story, 3), by: story.urls[3] ?? "" });
    await story.until(() => (story.nodes[3]?.listeners ?? 0) > 0, "it listens to the newcomer");
    void held.release();
    expect((await story.timed(waiting)).tookMs).toBeLessThan(200);
  },
  { nodes: 4 },
);
