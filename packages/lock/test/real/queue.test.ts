// The queue of the processes that wait for one lock, with real processes, sockets and event loops.
// In which order they have it, and what becomes of the others when some die, stand still or give up,
// is told in simulated time (unit/waiting/queue.test.ts).
import { type ChildProcess, fork } from "node:child_process";
import { Redis } from "ioredis";
import { expect, test, timed, until } from "./lock-test.js";

/** Polls would come after the test's time. */
const retry = { minDelayMs: 20_000, maxDelayMs: 60_000 };
const SOON_MS = 5_000;

test("W1 the first process in the queue stands still: the next one has the lock soon, and the first one when it goes on", async ({
  shared,
  redis: { urls: nodes, namespace },
}) => {
  const reader = new Redis(nodes[0] ?? "");
  const queued = (count: number) => until(async () => (await reader.hlen(`{${namespace}}:queue:r`)) === count, `${count} wait`, 20_000);
  const lease = await shared().acquire("r", { renew: true });
  const options = { nodes, namespace, ttlMs: 10_000, nodeTimeoutMs: 5_000, connectTimeoutMs: 10_000, retry };
  const first: ChildProcess = fork(new URL("../../.build/test/real/queue-process.js", import.meta.url), [JSON.stringify(options)]);
  try {
    await queued(1);
    const next = shared({ retry }).acquire("r", { waitMs: 50_000 });
    await queued(2);
    first.kill("SIGSTOP");
    const { tookMs, result } = await timed(async () => {
      void lease.release();
      return next;
    });
    expect(tookMs).toBeLessThan(SOON_MS);
    const goneOn = new Promise((resolve) => first.once("message", resolve));
    first.kill("SIGCONT");
    await result.release();
    expect(await goneOn).toBeGreaterThan(result.token);
  } finally {
    first.kill("SIGKILL");
    reader.disconnect();
  }
});
