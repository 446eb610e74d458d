// What the clients of the soak do with the lock alone: every way a lease begins and ends, the unhappy ones too. Each operation leaves nothing behind.
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { Tools } from "./tools-of-work.js";

export type Work = (tools: Tools) => Promise<unknown>;

/** With how often each is done, relative to the others. */
export const lockWork: Readonly<Record<string, readonly [weight: number, work: Work]>> = {
  contend: [22, contend],
  "take what is free": [18, takeFree],
  "give up waiting": [9, giveUp],
  "hold and renew": [3, holdAndRenew],
  "let it run out": [2, letRunOut],
  try: [5, tryIt],
  "take several": [3, takeSeveral],
  "hand on": [2, handOn],
  "look at": [2, lookAt],
  "open and close": [0.5, openAndClose],
};

async function contend(tools: Tools): Promise<void> {
  const lease = await tools.timed("wait", () => tools.acquire(tools.hot(), { signal: tools.shutdown.signal }));
  await sleep(tools.chance.between(10, 80));
  await lease.release();
}

async function takeFree(tools: Tools): Promise<void> {
  const lease = await tools.timed("acquire", () => tools.acquire(tools.fresh()));
  await lease.release();
}

async function giveUp(tools: Tools): Promise<void> {
  const patience = new AbortController();
  const timer = setTimeout(() => patience.abort(), tools.chance.between(0, 60));
  try {
    const lease = await tools.acquire(tools.hot(), { signal: patience.signal });
    await lease.release();
  } finally {
    clearTimeout(timer);
  }
}

async function holdAndRenew(tools: Tools): Promise<void> {
  const lease = await tools.acquire(tools.fresh(), { ttlMs: 500, renew: true });
  const unsubscribe = lease.onDanger(() => {});
  await sleep(tools.chance.between(400, 1_600));
  unsubscribe();
  await lease.release();
}

/** Nobody releases it: the keys go by themselves, and the signal tells. */
async function letRunOut(tools: Tools): Promise<void> {
  const lease = await tools.acquire(tools.fresh(), { ttlMs: 200 });
  if (!lease.signal.aborted) await once(lease.signal, "abort");
}

async function tryIt(tools: Tools): Promise<void> {
  const attempt = await tools.locker.tryAcquire(tools.chance.happens(0.5) ? tools.hot() : tools.fresh());
  if (attempt.ok) await attempt.lease.release();
}

async function takeSeveral(tools: Tools): Promise<void> {
  await using _lease = await tools.acquire([tools.fresh(), tools.document(), tools.fresh()], { waitMs: 500 });
}

async function handOn(tools: Tools): Promise<void> {
  const lease = await tools.acquire(tools.fresh());
  const adopted = await tools.locker.adopt(lease.serialize());
  await adopted.extend();
  await adopted.release();
}

async function lookAt(tools: Tools): Promise<void> {
  await tools.locker.inspect(tools.hot());
}

/** A locker that does not live long, as in a script or a function. */
async function openAndClose(tools: Tools): Promise<void> {
  await using locker = tools.anotherLocker();
  const lease = await tools.under(locker.acquire(tools.fresh()));
  await lease.release();
}
