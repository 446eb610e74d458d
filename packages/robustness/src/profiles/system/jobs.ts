// What clients do under the lock, each a read-modify-write of one kind or another. They never ask whether the lease still lasts before they write: to say no is the
// store's business here.
import { setTimeout as sleep } from "node:timers/promises";
import { withResource } from "@palisade/gateway/client";
import { type Document, type Seen, successor } from "./document.js";
import type { Door } from "./door.js";
import type { HeldLease } from "./leases.js";
import { basis } from "./recorder.js";
import type { Trade } from "./trade.js";
import { refused } from "./typed-door.js";
import { documents, rows, SHORT_TTL_MS, TTL_MS } from "./words.js";

export type Job = (trade: Trade) => Promise<"stored" | "not stored">;

/** Once, by the client's own shortest way. */
export const simple: Job = async ({ chance, leases, recorder, gateway }) => {
  const resource = chance.one(documents);
  const id = recorder.name();
  let held: HeldLease | undefined;
  let sent = false;
  const locker = {
    acquire: async (name: string): Promise<HeldLease> => {
      held = await leases.acquire(name, { ttlMs: TTL_MS, renew: true });
      return held;
    },
  };
  try {
    const stored = await withResource<Document, Document>(locker, gateway(), resource, (document, { rev, lease }) => {
      const on = basis({ rev, document });
      recorder.sent({ id, kind: "put", via: "withResource", resource, token: lease.token, seq: 1, on });
      sent = true;
      return successor(document, id);
    });
    recorder.answered(id, { outcome: "done", rev: stored.rev });
    return "stored";
  } catch (error) {
    const { name, code, outcome } = error as { name: string; code?: string; outcome?: string };
    if (held === undefined && code !== undefined) return "not stored"; // The lock said no.
    if (name !== "GatewayError") throw error;
    if (sent) recorder.answered(id, refused({ outcome: outcome === "unknown" ? "unknown" : "not_applied", code: code as never }));
    return "not stored";
  }
};

/** Several writes of one lease, now and then with a nap between, in which the lease may end. */
export const several: Job = async (trade) => {
  const { chance } = trade;
  const door = chance.happens(0.5) ? trade.raw : trade.typed;
  await using lease = await trade.leases.acquire(chance.one(documents), { ttlMs: chance.one([TTL_MS, SHORT_TTL_MS]) });
  return await writeSome(trade, { door, lease, writes: chance.between(1, 3) });
};

/** Stopped by a signal between the read and the write, past the end of the lease. */
export const oversleeper: Job = async (trade) => {
  const { chance } = trade;
  const door = trade.mode === "unfenced" || chance.happens(0.5) ? trade.raw : trade.typed;
  await using lease = await trade.leases.acquire(chance.one(documents), { ttlMs: SHORT_TTL_MS });
  return await writeSome(trade, { door, lease, writes: 1, sleepsMs: SHORT_TTL_MS + chance.between(10, 400) });
};

/** Removes the document and makes it again, under one lease or two. */
export const remover: Job = async (trade) => {
  const { chance, recorder, raw, typed } = trade;
  const door = chance.happens(0.5) ? raw : typed;
  const resource = chance.one(documents);
  await using lease = await trade.leases.acquire(resource, { ttlMs: TTL_MS });
  const { seen } = await recorder.seal(door, resource, lease.token);
  if (seen?.document == null) return "not stored";
  const planned = { resource, lease, shows: "token" } as const;
  const removed = await recorder.write(door, { ...planned, kind: "delete", seq: 1, on: seen });
  if (removed.seen === undefined) return "not stored";
  if (chance.happens(0.5)) await recorder.write(door, { ...planned, kind: "put", seq: 2, on: removed.seen });
  return "stored";
};

/** Two documents under one lease, in one transaction: both or none. */
export const pair: Job = async ({ chance, leases, recorder, gateway, typed }) => {
  const resources = chance.some(documents, 2);
  await using lease = await leases.acquire(resources, { ttlMs: TTL_MS });
  const { token } = lease;
  const group = recorder.name();
  const operations = [];
  const ids: string[] = [];
  for (const resource of resources) {
    const { seen } = await recorder.seal(typed, resource, token);
    if (seen === undefined) return "not stored";
    const id = recorder.name();
    ids.push(id);
    operations.push({ op: "put", resource, seq: 1, value: successor(seen.document, id), on: basis(seen) } as const);
  }
  for (const [i, { resource, on }] of operations.entries())
    recorder.sent({ id: ids[i] as string, kind: "put", via: "transaction", resource, token, seq: 1, on, group });
  const wire = operations.map(({ on: _, ...operation }) => operation);
  const result = await gateway().transaction(wire, { token, idempotencyKey: group });
  for (const [i, id] of ids.entries()) {
    const rev = result.ok ? result.results[i]?.rev : undefined;
    recorder.answered(id, result.ok ? { outcome: "done", ...(rev === undefined ? {} : { rev }) } : refused(result));
  }
  return result.ok ? "stored" : "not stored";
};

/** A row of the client's own table, in its own transaction. */
export const owner: Job = async ({ chance, leases, recorder, table }) => {
  if (table === undefined) return "not stored";
  const resource = chance.one(rows);
  await using lease = await leases.acquire(resource, { ttlMs: TTL_MS });
  const by = recorder.name();
  const facts = { id: by, kind: "guarded", via: "guard", resource, token: lease.token } as const;
  recorder.sent(facts);
  const onRead = (seen: Seen): void => recorder.sent({ ...facts, on: basis(seen) });
  const answer = await table.write({ resource, token: lease.token, by, onRead });
  recorder.answered(by, answer);
  return answer.outcome === "done" ? "stored" : "not stored";
};

/** Only looks. */
export const reader: Job = async ({ chance, recorder, raw, typed }) => {
  await recorder.get(chance.happens(0.5) ? raw : typed, chance.one(documents));
  return "not stored";
};

interface SomeWrites {
  readonly door: Door;
  readonly lease: HeldLease;
  readonly writes: number;
  /** Before the first write. */
  readonly sleepsMs?: number;
}

async function writeSome({ chance, recorder, mode, sleepFor }: Trade, { door, lease, writes, sleepsMs }: SomeWrites) {
  const { resource, token } = lease;
  let { seen } = await recorder.seal(door, resource, token);
  for (let seq = 1; seq <= writes && seen !== undefined; seq++) {
    if (sleepsMs !== undefined) await sleepFor(sleepsMs);
    else if (chance.happens(0.15)) await sleep(chance.between(1, TTL_MS));
    // The client of the gateway looks at the lease it is shown; who shows a token only, is stopped by nothing but the fence.
    const shows = mode === "fenced" && chance.happens(0.3) ? "lease" : "token";
    const kind = seen.document === null || chance.happens(0.7) ? "put" : "patch";
    ({ seen } = await recorder.write(door, { kind, resource, seq, on: seen, lease, shows }));
  }
  return seen === undefined ? "not stored" : "stored";
}
