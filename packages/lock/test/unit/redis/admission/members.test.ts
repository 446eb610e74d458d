// Members that change while leases are taken, held and waited for, in simulated time. A change
// step by step: change.test.ts; on real servers: test/real/members.test.ts.
import { expect } from "vitest";
import type { Lease, Locker } from "../../../../src/protocol/locker.js";
import { failure } from "../../../listening.js";
import { type Story, test } from "../../../simulation/story.js";

const options = { ttlMs: 2_000, maxTtlMs: 2_000, waitMs: 5_000 };
const addressOf = (story: Story, node: number): string => new URL(story.urls[node - 1] ?? "").host;

/** Each of the lockers takes one lease of each resource after the other; T1, T2 and L2 hold all the time. */
class Work {
  #leases = 0;
  #isOver = false;
  readonly #story: Story;
  readonly #last = new Map<string, number>();
  readonly #holding = new Map<string, Lease>();
  readonly #all: Promise<unknown>;

  constructor(story: Story, lockers: readonly Locker[], resources: readonly string[]) {
    this.#story = story;
    this.#all = Promise.all(lockers.flatMap((locker) => resources.map((resource) => this.#work(locker, resource))));
  }

  /** How many leases there were. */
  async end(): Promise<number> {
    this.#isOver = true;
    await this.#all;
    return this.#leases;
  }

  async #work(locker: Locker, resource: string): Promise<void> {
    while (!this.#isOver) {
      const before = this.#last.get(resource) ?? 0;
      const lease = await locker.acquire(resource).catch(() => undefined);
      if (lease === undefined) continue;
      expect(this.#holding.get(resource)?.held ?? false, `${resource} is held already`).toBe(false);
      expect(lease.token).toBeGreaterThan(before);
      expect(lease.token).not.toBe(this.#last.get(resource));
      this.#last.set(resource, Math.max(lease.token, this.#last.get(resource) ?? 0));
      this.#holding.set(resource, lease);
      this.#leases++;
      await this.#story.pass(60);
      await lease.release();
    }
  }
}

test(
  "M1 T1 T2 L2 adds, replaces and removes members while leases are taken, and none that is held is lost",
  async (story) => {
    const url = (node: number): string => story.urls[node - 1] ?? "";
    const address = (node: number): string => addressOf(story, node);
    const lockers = [1, 2, 3].map(() => story.actor({ ...options, nodes: [1, 2, 3].map(url) }).locker);
    const [operator] = lockers as [(typeof lockers)[number], ...typeof lockers];
    await operator.ready();
    const held = await operator.acquire("held", { renew: true });
    const work = new Work(story, lockers, ["a", "b"]);
    const sizes: number[] = [];
    const changes = [{ add: url(4) }, { add: url(5) }, { replace: address(1), by: url(6) }, { remove: address(2) }, { remove: address(3) }];
    for (const change of changes) {
      const { members, generation } = await operator.fleet.reconfigure(change);
      sizes.push(members.length);
      expect(generation).toBe(sizes.length + 1);
    }
    expect(await work.end()).toBeGreaterThan(50);
    expect(sizes).toEqual([4, 5, 5, 4, 3]);
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

test(
  "L2 a newcomer whose disk goes back to the time when it waited for its first admission has forgotten leases, like any other",
  async (story) => {
    const nodes = story.urls.slice(0, 3);
    const { locker } = story.actor({ ...options, nodes });
    await locker.ready();
    const fourth = story.nodes[3];
    const admitted = () => fourth?.command("HGET", "{sim}:node", "admitted");
    await locker.fleet.reconfigure({ replace: addressOf(story, 3), by: story.urls[3] ?? "" });
    expect(admitted()).toBe(null);
    const snapshot = fourth?.server.memory.copy();
    await story.until(admitted, "the newcomer is admitted");
    story.nodes[1]?.kill();
    const held = await locker.acquire("r", { renew: false });
    story.nodes[1]?.restart();
    fourth?.restart(snapshot);
    const next = await story.actor({ ...options, nodes }).locker.acquire("r", { waitMs: 30_000 });
    expect(held.remainingMs()).toBe(0);
    expect(next.token).toBeGreaterThan(held.token);
  },
  { nodes: 4 },
);

test(
  "L2 M1 servers that left come back, one with an old disk, and a member is down: a process with the old list goes on to the others",
  async (story) => {
    const [first, second, third] = story.nodes;
    const nodes = story.urls.slice(0, 3);
    const { locker } = story.actor({ ...options, nodes });
    await locker.ready();
    const old = second?.server.memory.copy();
    for (const [leaving, coming] of [
      [1, 3],
      [2, 4],
    ] as const) {
      await locker.fleet.reconfigure({ replace: addressOf(story, leaving), by: story.urls[coming] ?? "" });
      await story.until(async () => (await locker.ready()).admitted.length === 3, "the newcomer votes");
      // It misses its own departure.
      second?.kill();
    }
    third?.kill();
    const held = await locker.acquire("r", { renew: true });
    const untold = async () => (await locker.fleet.doctor()).flatMap(({ code, message }) => (code === "untold" ? [message] : []));
    expect(await untold()).toEqual([expect.stringMatching(/^n2:6379 left with generation 3 and could not be told/)]);
    first?.restart();
    second?.restart(old);
    const late = story.actor({ ...options, nodes }).locker;
    await expect(late.acquire("r", { waitMs: 20_000 })).rejects.toMatchObject({ code: "LOCK_HELD" });
    expect(await late.fleet.members()).toMatchObject({ generation: 3, members: expect.not.arrayContaining(["n1:6379", "n2:6379"]) });
    expect(held.held).toBe(true);
    await late.fleet.reconfigure({ remove: "n2:6379" });
    expect(second?.command("HGET", "{sim}:node", "members")).toContain('{"generation":3,');
    expect(await untold()).toEqual([]);
    // Beside servers of another fleet it is not used either.
    const stranger = story.actor({ ...options, nodes: [story.urls[0] ?? "", ...story.urls.slice(5)] });
    await expect(stranger.locker.ready()).rejects.toThrow(/n1 left its fleet with generation 2, whose members are .*; give this process/);
  },
  { nodes: 7, appendfsync: "no" },
);

test(
  "M1 a fleet of two says at once that it cannot become one, and changes nothing",
  async (story) => {
    const { locker } = story.actor();
    await (await locker.acquire("r")).release();
    const calls = story.nodes.map(({ server }) => server.memory.hash("{sim}:node", server.wallMs())?.get("admitted"));
    for (const change of [{ remove: addressOf(story, 2) }, { replace: addressOf(story, 2), by: "redis://n1:6379" }]) {
      const { result, tookMs } = await story.timed(failure(locker.fleet.reconfigure(change)));
      expect(result).toBeInstanceOf(RangeError);
      expect(String(result)).toMatch(/a fleet of 2 cannot lose a member: n2:6379 would have to agree .* add a member first/);
      expect(tookMs).toBeLessThan(100);
    }
    expect(story.nodes.map(({ server }) => server.memory.hash("{sim}:node", server.wallMs())?.get("admitted"))).toEqual(calls);
    expect((await locker.fleet.members()).generation).toBe(1);
  },
  { nodes: 2 },
);

test("L2 a default ttl follows the longest lease of the fleet; one that was given is refused with both numbers, and the doctor names it", async (story) => {
  const [operator, ordinary, given] = [story.actor(), story.actor(), story.actor({ ttlMs: 8_000 })];
  for (const { locker } of [operator, ordinary, given]) await (await locker.acquire("r")).release();
  expect((await given.locker.fleet.doctor()).filter(({ code }) => code === "max_ttl")).toEqual([]);
  await operator.locker.fleet.reconfigure({ maxTtlMs: 5_000 });
  const late = story.actor();
  for (const { locker } of [operator, ordinary, late]) {
    const lease = await locker.acquire("r", { renew: true });
    expect(lease.remainingMs()).toBeLessThan(5_000);
    await story.pass(12_000);
    expect(lease.held).toBe(true);
    await lease.release();
    const attempt = await locker.tryAcquire("r", { maxHoldMs: 7_000 });
    expect(attempt.ok && attempt.lease.remainingMs()).toBeLessThan(5_000);
    await (attempt.ok && attempt.lease.release());
  }
  const both = /ttlMs 8000 is longer than this fleet's leases may be: 5000 ms/;
  expect(String(await failure(given.locker.acquire("r")))).toMatch(both);
  expect(String(await failure(late.locker.acquire("r", { ttlMs: 8_000 })))).toMatch(both);
  const findings = (await given.locker.fleet.doctor()).filter(({ code }) => code === "max_ttl");
  const message = expect.stringMatching(/^ttlMs is 8000 here, and leases of this fleet last 5000 ms at most/);
  expect(findings).toMatchObject([{ severity: "error", message }]);
});

test(
  "M1 T2 L2 lockers with another list, half with n1, n2, n3 and half with n1, n2, n4, hold no lease twice and give no token twice",
  async (story) => {
    const [n1 = "", n2 = "", n3 = "", n4 = ""] = story.urls;
    const lists = [
      [n1, n2, n3],
      [n1, n2, n4],
    ];
    const lockers: Locker[] = [];
    for (const nodes of [...lists, ...lists]) {
      const { locker } = story.actor({ ...options, ttlMs: 300, maxTtlMs: 300, nodes });
      await locker.ready();
      lockers.push(locker);
    }
    const work = new Work(story, lockers, ["a", "b", "c"]);
    await story.pass(3_000);
    expect(await work.end()).toBeGreaterThan(50);
    const message = expect.stringMatching(/^generation 1 has n4 \(.*\) in place of n3 \(.*\)/);
    expect(await lockers[1]?.fleet.doctor()).toContainEqual(expect.objectContaining({ code: "members", message }));
  },
  { nodes: 4 },
);

test(
  "reconfigure of a locker that is closed rejects with LOCK_ABORTED, and can be asked for again",
  async (story) => {
    const nodes = story.urls.slice(0, 3);
    const change = { add: story.urls[3] ?? "" };
    const [first, second] = [story.actor({ ...options, nodes }).locker, story.actor({ ...options, nodes }).locker];
    await first.ready();
    story.nodes[3]?.partition();
    const asked = expect(first.fleet.reconfigure(change)).rejects.toMatchObject({ code: "LOCK_ABORTED" });
    await first.close();
    await asked;
    story.nodes[3]?.heal();
    expect((await second.fleet.reconfigure(change)).members).toHaveLength(4);
  },
  { nodes: 4 },
);

test(
  "L2 a newcomer outwaits the leases of the member that it replaces, also for a locker that sees no member vote",
  async (story) => {
    const nodes = story.urls.slice(0, 3);
    const { locker, hold } = story.actor({ ...options, nodes, connectTimeoutMs: 150 });
    await locker.ready();
    story.nodes[1]?.kill();
    const held = await locker.acquire("r", { renew: false });
    story.nodes[1]?.restart();
    await story.until(async () => (await locker.ready()).admitted.length === 3, "all vote");
    await locker.fleet.reconfigure({ replace: addressOf(story, 3), by: story.urls[3] ?? "" });
    // Of the two that granted it one is gone, and the other forgets; the third votes for others only.
    hold("n2");
    story.nodes[0]?.forget();
    const next = await story
      .actor({ ...options, nodes: story.urls.slice(0, 2).concat(story.urls[3] ?? "") })
      .locker.acquire("r", { waitMs: 30_000 });
    expect(held.remainingMs()).toBe(0);
    expect(next.token).toBeGreaterThan(held.token);
  },
  { nodes: 4 },
);
