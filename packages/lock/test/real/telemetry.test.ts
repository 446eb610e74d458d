// What subscribers are told: every round, every wait, every end of a lease, and what happens to nodes; the
// same as metrics, and as spans.

import { context, propagation, SpanStatusCode, trace } from "@opentelemetry/api";
import { InMemorySpanExporter, NodeTracerProvider, type ReadableSpan, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-node";
import type { EndEvent, NodeEvent, RoundEvent, WaitEvent } from "@palisade/lock";
import { traceLocks } from "@palisade/lock/tracing";
import { Registry } from "prom-client";
import { afterAll, beforeAll } from "vitest";
import { lockMetrics } from "#lock/metrics/lock-metrics.js";
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

// The lock's events as metrics, in a real registry of prom-client.

test("attempts, waits, holds, renewals, losses and nodes are counted, until counting is stopped", async ({ fleet, open }) => {
  const registry = new Registry();
  const { urls, nodes } = await fleet({ nodes: 3 });
  const [holder, waiter] = [open({ nodes: urls }), open({ nodes: urls })];
  const stop = lockMetrics(registry, holder);
  const value = async (name: string, labels: Readonly<Record<string, string>> = {}) => {
    const found = (await registry.getSingleMetric(name)?.get())?.values ?? [];
    const matching = found.filter((each) =>
      Object.entries(labels).every(([label, is]) => (each.labels as Record<string, unknown>)[label] === is),
    );
    const counts = matching.filter((each) => !("metricName" in each) || each.metricName === `${name}_count`);
    return counts.reduce((sum, each) => sum + each.value, 0);
  };
  const standing = async () => {
    const lines = (await registry.metrics()).split("\n");
    return lines.filter((line) => /^palisade_lock_(nodes|quorum|spare)/.test(line)).map((line) => line.replace(/\w+_lock_/, ""));
  };
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
  const degraded = (state: "waits" | "silent") => [
    'nodes{state="votes"} 2',
    `nodes{state="waits"} ${state === "waits" ? 1 : 0}`,
    `nodes{state="silent"} ${state === "silent" ? 1 : 0}`,
    "quorum 2",
    "spare_nodes 0",
  ];
  await expect.poll(standing).toEqual(degraded("silent"));
  await nodes[0]?.restart({ forget: true });
  await expect.poll(standing).toEqual(degraded("waits"));
  expect(await registry.metrics()).not.toContain(String(lease.token));
  await holder.close();
  expect(await standing()).toEqual([
    'nodes{state="votes"} 0',
    'nodes{state="waits"} 0',
    'nodes{state="silent"} 0',
    "quorum 1",
    "spare_nodes -1",
  ]);
  stop();
  expect(await standing()).toEqual([]);
  const before = await value("palisade_lock_attempts_total");
  await waiter.tryAcquire("s");
  expect(await value("palisade_lock_attempts_total")).toBe(before);
});

// Leases as spans of OpenTelemetry, with its real SDK and spans that stay in memory. From the call
// to the statement: packages/gateway/test/real/tracing.test.ts.

const kept = new InMemorySpanExporter();
const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(kept)] });
let stop = (): void => {};

beforeAll(() => {
  provider.register();
  stop = traceLocks();
});

afterAll(async () => {
  stop();
  await provider.shutdown();
  // The first provider of a process stays, and test files share processes.
  for (const api of [trace, context, propagation]) api.disable();
});

const spansOf = (resource: string, name: string): readonly ReadableSpan[] =>
  kept.getFinishedSpans().filter((span) => span.name === `palisade ${name}` && span.attributes["palisade.resource"] === resource);
const endOf = (resource: string): ReadableSpan | undefined => spansOf(resource, "hold")[0];

test("L1 the loss of a lease, and why, is on the span of its hold, with its renewals and its release below", async ({ locker }) => {
  await locker.acquire("expired", { ttlMs: 100 });
  const lease = await locker.acquire("taken");
  await lease.extend();
  await locker.fleet.forceRelease("taken", { reason: "test" });
  await expect(lease.extend()).rejects.toMatchObject({ code: "LEASE_LOST" });
  await expect.poll(() => endOf("expired")?.attributes["error.type"]).toBe("expired");
  expect(endOf("expired")?.status.code).toBe(SpanStatusCode.ERROR);
  expect(endOf("taken")?.attributes).toMatchObject({ "error.type": "taken", "palisade.outcome": "taken", "palisade.token": lease.token });
  await expect.poll(() => spansOf("taken", "release")).toHaveLength(1);
  const below = [...spansOf("taken", "renew"), ...spansOf("taken", "release")];
  expect(below.map(({ attributes }) => attributes["palisade.outcome"])).toEqual(["renewed", "lost", "free"]);
  for (const { parentSpanContext } of below) expect(parentSpanContext?.spanId).toBe(endOf("taken")?.spanContext().spanId);
  await (await locker.acquire("given")).release();
  expect(endOf("given")).toMatchObject({ status: { code: SpanStatusCode.UNSET }, attributes: { "palisade.outcome": "released" } });
});

test("an acquisition that is refused is an error, but for tryAcquire that meets a holder", async ({ locker }) => {
  const holder = await locker.acquire(["held", "held too"]);
  await expect(locker.acquire("held", { waitMs: 0 })).rejects.toMatchObject({ code: "LOCK_HELD" });
  expect(await locker.tryAcquire("held")).toMatchObject({ ok: false, reason: "held" });
  const [won, waited, tried] = spansOf("held", "acquire");
  expect(won?.attributes).toMatchObject({ "palisade.resources": ["held", "held too"], "palisade.token": holder.token });
  expect(waited).toMatchObject({ status: { code: SpanStatusCode.ERROR }, attributes: { "error.type": "LOCK_HELD" } });
  expect(tried).toMatchObject({ status: { code: SpanStatusCode.UNSET }, attributes: { "palisade.outcome": "held" } });
});
