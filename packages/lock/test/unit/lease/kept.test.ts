// Keeping a lease and losing it, in simulated time: deadlines, renewals, warnings, and nodes that are
// frozen meanwhile.
import { describe, expect } from "vitest";
import type { DangerEvent, LossEvent, RenewalEvent } from "../../../src/protocol/events.js";
import { aborted, failure, listen } from "../../listening.js";
import { test } from "../../simulation/story.js";

const renewalsOf = (resource: string) => listen<RenewalEvent>("renewal", ({ resources }) => resources.includes(resource));
const free = (nodes: number): readonly null[] => Array(nodes).fill(null);

describe("the end of a lease", () => {
  test("L1 comes before the time of the keys is over, without a reply from any node, and is announced once, when a quarter of the time is left", async (story) => {
    using dangers = listen<DangerEvent>("danger", ({ resources }) => resources.includes("ends"));
    using losses = listen<LossEvent>("loss", ({ resources }) => resources.includes("ends"));
    const { locker } = story.actor();
    await (await locker.acquire("ends")).release();
    expect(losses.events).toEqual([]);
    const beganMs = story.nowMs;
    const lease = await locker.acquire("ends", { ttlMs: 1_200 });
    const [warnings, silenced]: [number[], number[]] = [[], []];
    lease.onDanger((remainingMs) => warnings.push(remainingMs));
    lease.onDanger((remainingMs) => silenced.push(remainingMs))();
    for (const node of story.nodes) node.pause();
    const { signal, token } = lease;
    await aborted(signal);
    expect(story.nowMs - beganMs).toBeLessThan(1_200);
    expect(signal.reason).toMatchObject({ code: "LEASE_LOST", reason: "expired", resource: "ends" });
    expect(() => lease.assertHeld()).toThrow(/ran out without a renewal/);
    expect([warnings, silenced]).toEqual([[expect.any(Number)], []]);
    expect(warnings[0]).toBeGreaterThan(290);
    expect(warnings[0]).toBeLessThanOrEqual(300);
    expect(dangers.events).toEqual([{ resources: ["ends"], token, remainingMs: warnings[0] }]);
    expect(losses.events).toEqual([{ resources: ["ends"], token, reason: "expired" }]);
  });

  test("is already there when the signal is first asked for afterwards", async (story) => {
    const lease = await story.actor().locker.acquire("r", { ttlMs: 200 });
    await story.pass(210);
    expect(lease.signal.aborted).toBe(true);
  });
});

describe("renewal", () => {
  test("keeps a lease beyond its ttl, a few times per ttl and not in a hot loop, also of the shortest ttl, and stops with the release", async (story) => {
    const { locker } = story.actor();
    await locker.ready();
    for (const [ttlMs, most] of [
      [4_000, 5],
      [12, 2.4],
    ] as const) {
      using renewals = renewalsOf(`of ${ttlMs}`);
      const lease = await locker.acquire(`of ${ttlMs}`, { ttlMs, renew: true });
      await story.pass(10 * ttlMs);
      lease.assertHeld();
      expect(renewals.events.length).toBeGreaterThanOrEqual(12);
      expect(renewals.events.length).toBeLessThanOrEqual(10 * most);
      expect(renewals.events.every(({ outcome, token }) => outcome === "renewed" && token === lease.token)).toBe(true);
      await lease.release();
      renewals.events.length = 0;
      await story.pass(2 * ttlMs);
      expect(renewals.events).toEqual([]);
    }
  });

  test("ends with maxHoldMs, and the keys with it", async (story) => {
    const { locker } = story.actor();
    await locker.ready();
    using renewals = renewalsOf("capped");
    const beganMs = story.nowMs;
    const { signal } = await locker.acquire("capped", { ttlMs: 5_000, renew: true, maxHoldMs: 5_600 });
    await aborted(signal);
    expect(story.nowMs - beganMs).toBeGreaterThan(5_550);
    expect(story.nowMs - beganMs).toBeLessThan(5_700);
    expect(signal.reason).toMatchObject({ reason: "expired" });
    expect(renewals.events.length).toBeLessThanOrEqual(3);
    await story.pass(100);
    expect(story.stored("lock", "capped")).toEqual(free(5));
  });

  test("is what using does while its routine runs; L1 where the lease was lost it rejects with LEASE_LOST in place of the result", async (story) => {
    const { locker } = story.actor();
    const token = await locker.using("r", { ttlMs: 3_500 }, async (lease) => {
      await story.pass(8_000);
      lease.assertHeld();
      return lease.token;
    });
    expect(token).toBeGreaterThan(0);
    await story.eventually(() => expect(story.stored("lock", "r")).toEqual(free(5)));
    const work = locker.using("r", { ttlMs: 4_000 }, async (lease) => {
      await story.pass(10);
      for (const node of story.nodes) node.command("DEL", "{sim}:lock:r");
      await aborted(lease.signal);
      return "done";
    });
    expect(await failure(work)).toMatchObject({ code: "LEASE_LOST", reason: "taken" });
  });
});

describe("a quorum that is frozen", () => {
  const three = { nodes: 3 };
  const freeze = ({ nodes }: { readonly nodes: readonly { pause(): void }[] }): void => {
    for (const node of nodes.slice(0, 2)) node.pause();
  };

  test(
    "L1 ends the lease on time, and says that it was unreachable",
    async (story) => {
      const { locker } = story.actor({ ttlMs: 4_000 });
      await locker.ready();
      const beganMs = story.nowMs;
      const { signal } = await locker.acquire("r", { renew: true });
      freeze(story);
      await aborted(signal);
      expect(story.nowMs - beganMs).toBeLessThan(4_000);
      expect(signal.reason).toMatchObject({ code: "LEASE_LOST", reason: "unreachable" });
      expect(String(signal.reason.message)).toMatch(/could not be renewed, because too many nodes could not be reached/);
    },
    three,
  );

  test(
    "neither ends nor prolongs the lease by not answering a renewal; when it answers again, the lease goes on",
    async (story) => {
      const lease = await story.actor({ nodeTimeoutMs: 300 }).locker.acquire("r", { ttlMs: 30_000 });
      freeze(story);
      const before = lease.remainingMs();
      const renewal = await lease.extend();
      expect(renewal.outcome).toBe("unknown");
      expect(renewal.remainingMs).toBeLessThan(before);
      expect(renewal.ballots.filter(({ kind }) => kind === "unreachable").map(({ node }) => node)).toEqual(["n1", "n2"]);
      lease.assertHeld();
      for (const node of story.nodes) node.resume();
      await story.until(async () => (await lease.extend()).outcome === "renewed", "the lease is renewed");
    },
    three,
  );

  test(
    "L1 does not keep a shorter ttl from counting: the nodes may hold the lease for no longer, whether or not they say so",
    async (story) => {
      const lease = await story.actor().locker.acquire("r", { ttlMs: 30_000 });
      for (const node of story.nodes) node.holdReplies();
      expect((await lease.extend(5_000)).outcome).toBe("unknown");
      expect(lease.remainingMs()).toBeLessThanOrEqual(5_000);
    },
    three,
  );

  test(
    "that executed an extension unheard gives the lease back when it is over, instead of holding it for a whole ttl",
    async (story) => {
      const lease = await story.actor({ ttlMs: 3_500, nodeTimeoutMs: 1_000 }).locker.acquire("r");
      for (const node of story.nodes) node.holdReplies();
      expect((await lease.extend(30_000)).outcome).toBe("unknown");
      expect(story.nodes[0]?.command("PTTL", "{sim}:lock:r")).toBeGreaterThan(20_000);
      await story.until(() => !lease.held, "the lease is over");
      await story.until(() => story.stored("lock", "r").every((value) => value === null), "nothing is left");
      expect(story.nowMs).toBeLessThan(10_000);
    },
    three,
  );

  test(
    "does not keep a release waiting longer than a node may take, and is told when it is back",
    async (story) => {
      const lease = await story.actor({ nodeTimeoutMs: 500 }).locker.acquire("r", { ttlMs: 60_000 });
      await story.pass(50);
      freeze(story);
      const { tookMs, result } = await story.timed(lease.release());
      expect(result.outcome).toBe("unconfirmed");
      expect(tookMs).toBeLessThan(600);
      for (const node of story.nodes) node.resume();
      await story.until(() => story.stored("lock", "r").every((value) => value === null), "it is told");
      expect(story.nowMs).toBeLessThan(10_000);
    },
    three,
  );
});

test("that the two of five nodes which are down come back while a caller waits gives it its lease", async (story) => {
  const { locker } = story.actor();
  await locker.ready();
  for (const i of [0, 2, 4]) story.nodes[i]?.kill();
  const waiting = locker.acquire("r", { waitMs: 20_000 });
  await story.pass(300);
  for (const i of [0, 2, 4]) story.nodes[i]?.restart();
  expect((await waiting).held).toBe(true);
});
