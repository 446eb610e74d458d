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
  await holder.fleet.forceRelease("r", { reason: "drill" });
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
