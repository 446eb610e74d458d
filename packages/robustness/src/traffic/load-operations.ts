// The operations of the soak's clients: every way a lease begins and ends, writes and reads through
// the gateway, and every refusal that a healthy client meets.
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { withResource } from "@palisade/client";
import type { LoadTools, Work } from "./load-tools.js";

/** Each with its weight. */
export const gatewayLoad: Readonly<Record<string, readonly [weight: number, work: Work]>> = {
  "read, change, write": [8, readChangeWrite],
  write: [9, write],
  "write something new": [3, writeNew],
  delete: [3, erase],
  read: [8, read],
  list: [1, list],
  "transaction of two": [2, transaction],
  "write late": [3, writeLate],
  "write with a forged token": [1, writeForged],
  "write to what was": [2, writeToWhatWas],
};

interface Text {
  readonly count: number;
  readonly text: string;
}

/** The name of the refusal, or undefined. */
type Refused = { readonly ok: true } | { readonly ok: false; readonly code: string };
const codeOf = (result: Refused): string | undefined => (result.ok ? undefined : result.code);

async function readChangeWrite(tools: LoadTools): Promise<void> {
  const change = (text: Text | null): Text => ({ count: (text?.count ?? 0) + 1, text: filler(tools) });
  await tools.whileWaiting(withResource<Text>(tools.locker, tools.gateway, tools.contended(), change));
}

/** Sealed first; the sequence number or the key makes it safe to repeat. */
async function write(tools: LoadTools): Promise<string | undefined> {
  const document = tools.document();
  const { chance, gateway } = tools;
  await using lease = await tools.acquire(document);
  const sealed = await gateway.seal(document, { lease });
  if (!sealed.ok) return sealed.code;
  const options = chance.happens(0.3) ? { lease, idempotencyKey: crypto.randomUUID() } : { lease, seq: 1 };
  return codeOf(
    await tools.timed("write", async () =>
      chance.happens(0.7)
        ? await gateway.put(document, { text: filler(tools) }, options)
        : await gateway.patch(document, { patched: chance.between(1, 1_000) }, options),
    ),
  );
}

async function writeNew(tools: LoadTools): Promise<string | undefined> {
  const document = tools.fresh();
  await using lease = await tools.acquire(document);
  return codeOf(await tools.gateway.put(document, { text: "x".repeat(120) }, { lease, seq: 1, signal: tools.shutdown.signal }));
}

async function erase(tools: LoadTools): Promise<string | undefined> {
  const document = tools.document();
  await using lease = await tools.acquire(document);
  return codeOf(await tools.gateway.delete(document, { lease, seq: 1 }));
}

async function read(tools: LoadTools): Promise<string | undefined> {
  const { gateway, chance, shutdown } = tools;
  const document = chance.happens(0.1) ? `nothing/${chance.between(1, 9)}` : tools.document();
  const first = await tools.timed("read", () => gateway.get(document, { signal: shutdown.signal }));
  if (!first.ok || chance.happens(0.5)) return codeOf(first);
  return codeOf(await gateway.get(document, { ifNoneMatch: first.rev }));
}

async function list(tools: LoadTools): Promise<string | undefined> {
  return codeOf(await tools.gateway.list({ prefix: "document/", limit: 20 }));
}

async function transaction(tools: LoadTools): Promise<string | undefined> {
  const names = tools.chance.some([tools.document(), tools.document(), tools.document()], 2);
  const [first = "", second = ""] = names;
  if (first === second) return undefined;
  await using lease = await tools.acquire(names, { waitMs: 500 });
  const value = { text: filler(tools) };
  return codeOf(
    await tools.gateway.transaction(
      [
        { op: "put", resource: first, value },
        { op: "patch", resource: second, value },
      ],
      { lease, idempotencyKey: crypto.randomUUID() },
    ),
  );
}

/** As an earlier holder would after a pause: refused as stale. */
async function writeLate(tools: LoadTools): Promise<string | undefined> {
  const document = tools.document();
  await using lease = await tools.acquire(document);
  await tools.gateway.seal(document, { lease });
  return codeOf(await tools.gateway.put(document, { text: "late" }, { token: lease.token - 1 }));
}

/** Never issued by the lock: refused before it can raise a fence. */
async function writeForged(tools: LoadTools): Promise<string | undefined> {
  return codeOf(await tools.gateway.put(tools.document(), { text: "forged" }, { token: 999_999_999_999_998 }));
}

async function writeToWhatWas(tools: LoadTools): Promise<string | undefined> {
  const document = tools.document();
  await using lease = await tools.acquire(document);
  return codeOf(await tools.gateway.put(document, { text: "to an old revision" }, { lease, ifMatch: 999_999_999 }));
}

function filler(tools: LoadTools): string {
  return "x".repeat(tools.chance.between(20, 400));
}

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
