// What subscribers are told: every round, the danger before the end of a lease, its loss, and
// what happens to nodes.
import type { EndEvent, NodeEvent, RoundEvent, WaitEvent } from "@palisade/lock";
import { describe, expect, failure, listen, test, until } from "./lock-test.js";

describe("a subscriber hears of", () => {
  test("every round, when the last node has answered it: of an acquisition, an extension, a release, a look and a forced release", async ({
    locker,
    eye,
  }) => {
    using heard = listen<RoundEvent>("round", ({ resources }) => resources[0] === "rounds");
    const lease = await locker.acquire("rounds");
    await expect.poll(() => eye.holders("rounds")).not.toContain(null);
    await lease.extend();
    await locker.inspect("rounds");
    await lease.release();
    await locker.fleet.forceRelease("rounds", { reason: "test" });
    const questions = () => new Set(heard.events.map(({ question }) => question));
    await expect.poll(questions).toEqual(new Set(["grant", "extend", "inspect", "release", "raise"]));
    for (const { ballots } of heard.events) expect(ballots.map(({ node }) => node).toSorted()).toEqual(["n1", "n2", "n3", "n4", "n5"]);
  });

  test("the second round of an acquisition whose nodes did not agree on a token", async ({ locker, eye }) => {
    const lease = await locker.acquire("sealed");
    await expect.poll(() => eye.tokens("sealed")).toEqual(Array(5).fill(String(lease.token)));
    await lease.release();
    await eye.gone("sealed");
    await Promise.all([0, 1, 2, 3].map((i) => eye.store("sealed", i, lease.token + 10 * (i + 1))));
    using heard = listen<RoundEvent>("round", ({ resources }) => resources[0] === "sealed");
    await (await locker.acquire("sealed")).release();
    await until(() => heard.events.some(({ question }) => question === "seal"), "the seal round is told of");
  });

  test("every end of a lease with the time for which it was held, and every wait with its time and who waits behind", async ({
    shared,
  }) => {
    const [holder, waiter] = [shared(), shared()];
    using ends = listen<EndEvent>("end", ({ resources }) => resources[0] === "ends");
    using waits = listen<WaitEvent>("wait", ({ resources }) => resources[0] === "ends");
    const lease = await holder.acquire("ends");
    expect(waits.events).toEqual([
      { resources: ["ends"], outcome: "won", token: lease.token, waitedMs: expect.any(Number), queueLength: 0 },
    ]);
    const waiting = [1, 2, 3].map(() => waiter.acquire("ends", { waitMs: 20_000 }));
    const impatient = failure(holder.acquire("ends", { waitMs: 100 }));
    await impatient;
    expect(waits.events[1]).toMatchObject({ outcome: "LOCK_HELD", queueLength: 0 });
    expect(waits.events[1]?.waitedMs).toBeGreaterThanOrEqual(99);
    await lease.release();
    expect(ends.events).toEqual([{ resources: ["ends"], token: lease.token, reason: "released", heldMs: expect.any(Number) }]);
    expect(ends.events[0]?.heldMs).toBeGreaterThanOrEqual(99);
    const first = await waiting[0];
    expect(waits.events[2]).toMatchObject({ outcome: "won", token: first?.token, queueLength: expect.any(Number) });
    expect(waits.events[2]?.queueLength).toBeGreaterThanOrEqual(1);
    expect(waits.events[2]?.waitedMs).toBeGreaterThanOrEqual(99);
    await first?.release();
    for (const next of waiting.slice(1)) await (await next).release();
  });

  test("nodes: met, lost with the cause, quarantined, admitted, and a fleet that is not one", async ({ fleet, open }) => {
    const { urls, nodes } = await fleet({ nodes: 3 });
    using heard = listen<NodeEvent>("node", () => true);
    const about = (kind: NodeEvent["kind"], node?: string) => () =>
      heard.events.some((event) => event.kind === kind && (node === undefined || ("node" in event && event.node === node)));
    const locker = open({ nodes: urls, maxTtlMs: 200 });
    await locker.ready();
    for (const node of ["n1", "n2", "n3"]) {
      expect(about("connected", node)()).toBe(true);
      expect(about("admitted", node)()).toBe(true);
    }
    heard.events.length = 0;
    await nodes[2]?.restart({ forget: true });
    for (const kind of ["disconnected", "connected", "quarantined", "admitted"] as const) await until(about(kind, "n3"), `n3 is ${kind}`);
    expect(heard.events.find(({ kind }) => kind === "disconnected")).toMatchObject({
      cause: expect.stringMatching(/./),
      address: expect.any(String),
    });
    await expect(open({ nodes: urls, maxTtlMs: 300 }).ready()).rejects.toThrow(RangeError);
    expect(about("fleet_refused")()).toBe(true);
    await open({ nodes: urls.slice(0, 2) }).ready();
    expect(about("members_differ")()).toBe(true);
  });
});
