// A finished try leaves no listener on a long-lived signal and no timer behind.
import { getEventListeners } from "node:events";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type Call, createTransport } from "../../src/transport.js";

const shutdown = new AbortController();
const get: Call = {
  subject: { operation: "get", resource: "r" },
  expects: { statuses: [200], token: "any", rev: "any", body: () => true },
  method: "GET",
  path: "/v1/resources/r",
  headers: {},
  signal: shutdown.signal,
  timeoutMs: 10_000,
};
const answers = async () => Response.json({ a: 1 }, { headers: { etag: '"3"', "fencing-token": "34" } });
const fails = async () => {
  throw new TypeError("fetch failed");
};
const hangs: typeof fetch = (_url, init) =>
  new Promise((_resolve, reject) => init?.signal?.addEventListener("abort", () => reject(init.signal?.reason)));

/** Node keeps the signals that AbortSignal.any derived from this one here. */
function dependants(signal: AbortSignal): number {
  const key = Object.getOwnPropertySymbols(signal).find(({ description }) => description === "kDependantSignals");
  const set = key === undefined ? undefined : (signal as unknown as Record<symbol, Set<unknown> | undefined>)[key];
  return set?.size ?? 0;
}

function leftBehind(): { listeners: number; dependants: number; timers: number } {
  const { signal } = shutdown;
  return { listeners: getEventListeners(signal, "abort").length, dependants: dependants(signal), timers: vi.getTimerCount() };
}

const nothing = { listeners: 0, dependants: 0, timers: 0 };

describe("a try leaves nothing behind on a signal that outlives it, nor a timer", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  test("when it was answered", async () => {
    const send = createTransport("http://gateway", undefined, answers);
    for (let i = 0; i < 3; i++) expect(await send(get)).toMatchObject({ ok: true, rev: 3, token: 34 });
    expect(leftBehind()).toEqual(nothing);
  });

  test("when it failed", async () => {
    const send = createTransport("http://gateway", undefined, fails);
    expect(await send(get)).toMatchObject({ ok: false, code: "connection_failed", outcome: "unknown" });
    expect(leftBehind()).toEqual(nothing);
  });

  test("when its time was over", async () => {
    const answer = createTransport("http://gateway", undefined, hangs)(get);
    vi.advanceTimersByTime(get.timeoutMs);
    expect(await answer).toMatchObject({ ok: false, code: "timed_out", outcome: "unknown" });
    expect(leftBehind()).toEqual(nothing);
  });

  test("when its caller gave up, before or during it", async () => {
    const caller = new AbortController();
    const send = createTransport("http://gateway", undefined, hangs);
    const answer = send({ ...get, signal: caller.signal });
    caller.abort();
    expect(await answer).toMatchObject({ ok: false, code: "aborted" });
    expect(getEventListeners(caller.signal, "abort")).toEqual([]);
    const late = createTransport("http://gateway", undefined, async (_url, init) => {
      init?.signal?.throwIfAborted();
      return await answers();
    });
    expect(await late({ ...get, signal: caller.signal })).toMatchObject({ ok: false, code: "aborted" });
    expect(vi.getTimerCount()).toBe(0);
  });
});
