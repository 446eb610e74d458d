// What the clients of the soak do with the lock alone: every way a lease begins and ends, refused acquires too.
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { LoadTools, Work } from "./load-tools.js";

/** Each with its weight. */
export const lockLoad: Readonly<Record<string, readonly [weight: number, work: Work]>> = {
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

async function contend(tools: LoadTools): Promise<void> {
  const lease = await tools.timed("wait", () => tools.acquire(tools.contended(), { signal: tools.shutdown.signal }));
  await sleep(tools.chance.between(10, 80));
  await lease.release();
}

async function takeFree(tools: LoadTools): Promise<void> {
  const lease = await tools.timed("acquire", () => tools.acquire(tools.fresh()));
  await lease.release();
}

async function giveUp(tools: LoadTools): Promise<void> {
  const cancel = new AbortController();
  const timer = setTimeout(() => cancel.abort(), tools.chance.between(0, 60));
  try {
    const lease = await tools.acquire(tools.contended(), { signal: cancel.signal });
    await lease.release();
  } finally {
    clearTimeout(timer);
  }
}

async function holdAndRenew(tools: LoadTools): Promise<void> {
  const lease = await tools.acquire(tools.fresh(), { ttlMs: 500, renew: true });
  const unsubscribe = lease.onDanger(() => {});
  await sleep(tools.chance.between(400, 1_600));
  unsubscribe();
  await lease.release();
}

/** Not released: the keys expire, and the signal tells of the end. */
async function letRunOut(tools: LoadTools): Promise<void> {
  const lease = await tools.acquire(tools.fresh(), { ttlMs: 200 });
  if (!lease.signal.aborted) await once(lease.signal, "abort");
}

async function tryIt(tools: LoadTools): Promise<void> {
  const attempt = await tools.locker.tryAcquire(tools.chance.happens(0.5) ? tools.contended() : tools.fresh());
  if (attempt.ok) await attempt.lease.release();
}

async function takeSeveral(tools: LoadTools): Promise<void> {
  await using _lease = await tools.acquire([tools.fresh(), tools.document(), tools.fresh()], { waitMs: 500 });
}

async function handOn(tools: LoadTools): Promise<void> {
  const lease = await tools.acquire(tools.fresh());
  const adopted = await tools.locker.adopt(lease.serialize());
  await adopted.extend();
  await adopted.release();
}

async function lookAt(tools: LoadTools): Promise<void> {
  await tools.locker.inspect(tools.contended());
}

/** A short-lived locker, as in a script or a function. */
async function openAndClose(tools: LoadTools): Promise<void> {
  await using locker = tools.anotherLocker();
  const lease = await tools.whileWaiting(locker.acquire(tools.fresh()));
  await lease.release();
}
