// Waiting for a lock on real nodes, with real processes, sockets and event loops. In which order callers
// have it, woken by what and for how long, and elections, are told in simulated time (unit/waiting).
import { type ChildProcess, fork } from "node:child_process";
import type { CampaignEvent } from "@palisade/lock";
import { Redis } from "ioredis";
import { test as base, expect, listen, timed, until } from "./lock-test.js";

const test = base.extend("child", ({ redis: { urls: nodes, namespace } }, { onCleanup }) => {
  const started: ChildProcess[] = [];
  onCleanup(() => {
    for (const child of started) child.kill("SIGKILL");
  });
  return (options: object) => {
    const all = { does: "wait", nodes, namespace, connectTimeoutMs: 10_000, ...options };
    const child = fork(new URL("../../.build/test/real/child.js", import.meta.url), [JSON.stringify(all)]);
    started.push(child);
    return child;
  };
});

/** Polls would come after the test's time. */
const retry = { minDelayMs: 20_000, maxDelayMs: 60_000 };

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

test("W1 the first process in the queue stands still: the next one has the lock soon, and the first one when it goes on", async ({
  shared,
  child,
  redis: { urls: nodes, namespace },
}) => {
  const reader = new Redis(nodes[0] ?? "");
  const queued = (count: number) => until(async () => (await reader.zcard(`{${namespace}}:queue:r`)) === count, `${count} wait`, 20_000);
  try {
    const lease = await shared().acquire("r", { renew: true });
    const first = child({ ttlMs: 10_000, nodeTimeoutMs: 5_000, retry });
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
