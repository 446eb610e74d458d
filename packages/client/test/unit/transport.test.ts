// A finished try leaves no listener on a long-lived signal and no timer behind.
import { getEventListeners } from "node:events";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { overFetch } from "../../src/exchange.js";
import { type Call, createTransport } from "../../src/transport.js";

const answers: typeof fetch = async (_url, init) => {
  init?.signal?.throwIfAborted();
  return Response.json({ a: 1 }, { headers: { etag: '"3"', "fencing-token": "34" } });
};
const fails: typeof fetch = async () => Promise.reject(new TypeError("fetch failed"));
const hangs: typeof fetch = (_url, init) =>
  new Promise((_resolve, reject) => init?.signal?.addEventListener("abort", () => reject(init.signal?.reason)));

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test.for<readonly [string, typeof fetch, (caller: AbortController) => unknown, object]>([
  ["was answered", answers, () => undefined, { ok: true, rev: 3, token: 34 }],
  ["failed", fails, () => undefined, { ok: false, code: "connection_failed", outcome: "unknown" }],
  ["was not answered in time", hangs, () => vi.advanceTimersByTime(10_000), { ok: false, code: "timed_out", outcome: "unknown" }],
  ["was given up by its caller", hangs, (caller) => caller.abort(), { ok: false, code: "aborted" }],
])("a try that %s leaves nothing behind on a signal that outlives it, nor a timer", async ([, fetching, meanwhile, outcome]) => {
  const caller = new AbortController();
  const { signal } = caller;
  const about = { subject: { operation: "get" }, expects: { statuses: [200], token: "any", rev: "any", body: () => true } } as const;
  const call: Call = { ...about, method: "GET", path: "/v1/resources/r", headers: {}, signal, timeoutMs: 10_000 };
  const send = createTransport("http://gateway", undefined, overFetch(fetching));
  const answer = send(call);
  meanwhile(caller);
  expect(await answer).toMatchObject(outcome);
  expect(getEventListeners(signal, "abort")).toEqual([]);
  expect(vi.getTimerCount()).toBe(0);
  // Node keeps the signals that AbortSignal.any derived from this one here.
  const dependants = Object.getOwnPropertySymbols(signal).find(({ description }) => description === "kDependantSignals");
  expect((signal as unknown as Record<symbol, Set<unknown> | undefined>)[dependants ?? Symbol()]?.size ?? 0).toBe(0);
  caller.abort();
  expect(await createTransport("http://gateway", undefined, overFetch(answers))(call)).toMatchObject({ ok: false, code: "aborted" });
  expect(vi.getTimerCount()).toBe(0);
});
