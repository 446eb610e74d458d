// The lock's events as metrics, in a real registry of prom-client.
import { Registry } from "prom-client";
import { lockMetrics } from "#lock/metrics/lock-metrics.js";
import { expect, test } from "./lock-test.js";

test("attempts, waits, holds, renewals, losses and nodes are counted, until counting is stopped", async ({ fleet, open }) => {
  const registry = new Registry();
  const stop = lockMetrics(registry);
  const value = async (name: string, labels: Readonly<Record<string, string>> = {}) => {
    const found = (await registry.getSingleMetric(name)?.get())?.values ?? [];
    const matching = found.filter((each) =>
      Object.entries(labels).every(([label, is]) => (each.labels as Record<string, unknown>)[label] === is),
    );
    const counts = matching.filter((each) => !("metricName" in each) || each.metricName === `${name}_count`);
    return counts.reduce((sum, each) => sum + each.value, 0);
  };
  const { urls, nodes } = await fleet({ nodes: 3 });
  const [holder, waiter] = [open({ nodes: urls }), open({ nodes: urls })];
  const lease = await holder.acquire("r");
  expect(await waiter.tryAcquire("r")).toMatchObject({ ok: false });
  const waiting = waiter.acquire("r", { waitMs: 20_000 });
  await lease.extend();
  await lease.release();
  const next = await waiting;
  await holder.forceRelease("r", { reason: "drill" });
  await expect(next.extend()).rejects.toMatchObject({ code: "LEASE_LOST" });
  await expect.poll(() => value("palisade_lock_losses_total", { reason: "taken" })).toBe(1);
  await expect.poll(() => value("palisade_lock_attempts_total", { outcome: "won" })).toBe(2);
  expect(await value("palisade_lock_attempts_total", { outcome: "held" })).toBeGreaterThan(0);
  expect(await value("palisade_lock_wait_seconds", { outcome: "won" })).toBe(2);
  expect(await value("palisade_lock_hold_seconds", { reason: "released" })).toBe(1);
  expect(await value("palisade_lock_renewals_total", { outcome: "renewed" })).toBe(1);
  expect(await value("palisade_lock_forced_releases_total")).toBe(1);
  await nodes[0]?.kill();
  await expect.poll(() => value("palisade_lock_disconnected_nodes")).toBe(1);
  await nodes[0]?.restart({ forget: true });
  await expect.poll(() => value("palisade_lock_quarantined_nodes")).toBe(1);
  expect(await registry.metrics()).not.toContain(String(lease.token));
  stop();
  const before = await value("palisade_lock_attempts_total");
  await holder.tryAcquire("s");
  expect(await value("palisade_lock_attempts_total")).toBe(before);
});

test("what several fleets do is counted by fleet, and what one does has no such label", async ({ fleet, open }) => {
  const registry = new Registry();
  const stop = lockMetrics(registry);
  const { urls, nodes } = await fleet({ nodes: 6 });
  const fleets = { east: urls.slice(0, 3), west: urls.slice(3) };
  const [several, single] = [open({ fleets }), open({ fleets: { west: urls.slice(3) }, namespace: "single" })];
  const names = Array.from({ length: 12 }, (_, i) => `r${i}`);
  for (const locker of [several, single]) for (const name of names) await locker.using(name, async (lease) => void (await lease.extend()));
  const seen = async (name: string) => (await registry.getSingleMetric(name)?.get())?.values ?? [];
  const counts = async (name: string, labels: object) =>
    (await seen(name))
      .filter((each) => !("metricName" in each) || each.metricName === `${name}_count`)
      .filter((each) => JSON.stringify(each.labels) === JSON.stringify(labels))
      .map(({ value }) => value);
  for (const [name, labels] of [
    ["palisade_lock_attempts_total", { outcome: "won" }],
    ["palisade_lock_wait_seconds", { outcome: "won" }],
    ["palisade_lock_renewals_total", { outcome: "renewed" }],
    ["palisade_lock_hold_seconds", { reason: "released" }],
  ] as const) {
    // An attempt is counted when the last of its nodes has answered.
    await expect.poll(() => counts(name, labels), { message: name }).toEqual([names.length]);
    const ofEach = async (): Promise<number[]> =>
      (await Promise.all(["east", "west"].map((each) => counts(name, { ...labels, fleet: each })))).flat();
    await expect.poll(async () => (await ofEach()).reduce((sum, count) => sum + count, 0), { message: name }).toBe(names.length);
    expect(await ofEach(), name).toHaveLength(2);
  }
  await several.forceRelease("r0", { reason: "drill" });
  expect((await seen("palisade_lock_forced_releases_total")).map(({ labels }) => Object.keys(labels))).toContainEqual(["fleet"]);
  await nodes[0]?.kill();
  await expect.poll(() => counts("palisade_lock_disconnected_nodes", { fleet: "east" })).toEqual([1]);
  expect(await counts("palisade_lock_disconnected_nodes", { fleet: "west" })).toEqual([0]);
  expect(await counts("palisade_lock_disconnected_nodes", {})).toEqual([0]);
  stop();
});
