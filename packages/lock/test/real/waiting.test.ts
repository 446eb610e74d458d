// Waiting for a lock on real nodes, with real processes, sockets and event loops. In which order callers
// have it, woken by what and for how long, and elections, are told in simulated time (unit/waiting).
import { type ChildProcess, fork } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import type { CampaignEvent, Locker } from "@palisade/lock";
import { Redis } from "ioredis";
import { test as base, expect, listen, timed, until } from "./lock-test.js";

const test = base.extend("child", ({ redis: { urls: nodes, namespace } }, { onCleanup }) => {
  const started: ChildProcess[] = [];
  onCleanup(() => {
    for (const child of started) child.kill("SIGKILL");
  });
  return (does: "wait" | "lead", options: object) => {
    const all = { does, nodes, namespace, connectTimeoutMs: 10_000, ...options };
    const child = fork(new URL("../../.build/test/real/child.js", import.meta.url), [JSON.stringify(all)]);
    started.push(child);
    return child;
  };
});

/** Polls would come after the test's time. */
const retry = { minDelayMs: 20_000, maxDelayMs: 60_000 };

test("a lock released in one process is taken over in another, long before any poll", async ({ shared }) => {
  const lockers = [0, 1].map(() => shared({ retry })) as [Locker, Locker];
  let held = await lockers[0].acquire("r", { ttlMs: 60_000 });
  const times: number[] = [];
  for (let i = 0; i < 20; i++) {
    const next = lockers[i % 2 === 0 ? 1 : 0].acquire("r", { ttlMs: 60_000, waitMs: 25_000 });
    await sleep(5);
    const { tookMs, result } = await timed(async () => {
      void held.release();
      return next;
    });
    times.push(tookMs);
    held = result;
  }
  times.sort((a, b) => a - b);
  // The shortest delay that is not ended by news is a tenth of minDelayMs.
  expect(times[10]).toBeLessThan(1_800);
});

test("a caller that gives up at any moment of an attempt leaves nothing", async ({ locker, eye }) => {
  await locker.ready();
  for (let i = 0; i < 40; i++) {
    const aborter = new AbortController();
    const asked = locker.acquire("r", { signal: aborter.signal });
    const timer = setTimeout(() => aborter.abort(), i % 4);
    await Promise.resolve();
    if (i % 5 === 0) aborter.abort();
    await asked.then(
      (lease) => lease.release(),
      (error: unknown) => expect(error).toMatchObject({ code: "LOCK_ABORTED" }),
    );
    clearTimeout(timer);
  }
  await eye.gone("r");
  expect((await locker.tryAcquire("r")).ok).toBe(true);
});

test("T2 many who take the same lock in a loop all finish, with tokens that are unique and rise", async ({ shared }) => {
  const lockers = Array.from({ length: 8 }, () => shared({ waitMs: 60_000 }));
  const tokens: number[] = [];
  let holders = 0;
  await Promise.all(
    lockers.map(async (locker) => {
      for (let i = 0; i < 8; i++) {
        await locker.using("r", (lease) => {
          holders++;
          expect(holders).toBe(1);
          tokens.push(lease.token);
          holders--;
        });
      }
    }),
  );
  expect(tokens).toHaveLength(64);
  expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
});

test("W1 the first process in the queue stands still: the next one has the lock soon, and the first one when it goes on", async ({
  shared,
  child,
  redis: { urls: nodes, namespace },
}) => {
  const reader = new Redis(nodes[0] ?? "");
  const queued = (count: number) => until(async () => (await reader.zcard(`{${namespace}}:queue:r`)) === count, `${count} wait`, 20_000);
  try {
    const lease = await shared().acquire("r", { renew: true });
    const first = child("wait", { ttlMs: 10_000, nodeTimeoutMs: 5_000, retry });
    await queued(1);
    const next = shared({ retry }).acquire("r", { waitMs: 50_000 });
    await queued(2);
    first.kill("SIGSTOP");
    const { tookMs, result } = await timed(async () => {
      void lease.release();
      return next;
    });
    expect(tookMs).toBeLessThan(5_000);
    const goneOn = new Promise((resolve) => first.once("message", resolve));
    first.kill("SIGCONT");
    await result.release();
    expect(await goneOn).toBeGreaterThan(result.token);
  } finally {
    reader.disconnect();
  }
});

test("L1 a leader that stands still is followed by another process, and learns of it when it goes on", async ({ child }) => {
  const heard: { readonly kind: string; readonly token: number; readonly from: ChildProcess }[] = [];
  const all = [1, 2].map(() => child("lead", { ttlMs: 1_000, nodeTimeoutMs: 500 }));
  for (const from of all) from.on("message", (said) => heard.push({ ...(said as { kind: string; token: number }), from }));
  await until(() => heard.length > 0, "one leads", 20_000);
  const [first] = heard;
  first?.from.kill("SIGSTOP");
  await until(() => heard.length > 1, "another leads", 20_000);
  expect(heard[1]).toMatchObject({ kind: "leads" });
  expect(heard[1]?.token).toBeGreaterThan(first?.token ?? 0);
  first?.from.kill("SIGCONT");
  await until(() => heard.some(({ kind, from }) => kind === "over" && from === first?.from), "it learns of it");
  expect(heard.find(({ kind }) => kind === "over")).toMatchObject({ token: first?.token, leads: false });
});

test("L1 what a routine throws after its term is over by the clock is no failure, also before a timer has said so", async ({ shared }) => {
  using failures = listen<CampaignEvent>("campaign", ({ resource }) => resource === "r");
  const locker = shared({ ttlMs: 300 });
  const leads: boolean[] = [];
  const campaign = locker.campaign("r", (term) => {
    if (leads.length > 0) return leads.push(true);
    // The process stands still, and what it reads first when it goes on is a refused write.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 350);
    leads.push(false);
    throw new Error(`a write with token ${term.token} was refused`);
  });
  await until(() => leads.length > 1, "it leads again", 10_000);
  await campaign.stop();
  expect(leads.slice(0, 2)).toEqual([false, true]);
  expect(failures.events).toEqual([]);
});
