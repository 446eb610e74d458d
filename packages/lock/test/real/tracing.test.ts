// Leases as spans of OpenTelemetry, with its real SDK and spans that stay in memory. From the call
// to the statement: packages/gateway/test/real/tracing.test.ts.
import { context, propagation, SpanStatusCode, trace } from "@opentelemetry/api";
import { InMemorySpanExporter, NodeTracerProvider, type ReadableSpan, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-node";
import { traceLocks } from "@palisade/lock/tracing";
import { afterAll, beforeAll } from "vitest";
import { expect, test } from "./lock-test.js";

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
