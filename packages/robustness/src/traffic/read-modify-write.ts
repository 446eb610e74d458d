// What clients do with documents under the lock, each a read-modify-write of one kind or another.
// They never ask whether the lease is still valid before they write: refusing a late write is the
// store's business here.
import { setTimeout as sleep } from "node:timers/promises";
import { type GatewayClient, withResource } from "@palisade/client";
import { type Document, type Seen, successor } from "../history/records.js";
import type { Chance } from "./chance.js";
import type { GuardedTable } from "./guarded-table.js";
import type { HeldLease, RecordedLock } from "./recorded-lock.js";
import { basis, type Recorder } from "./recorder.js";
import { type Route, refused } from "./route.js";

/** Documents behind the gateway, and rows of a table that its owner guards. */
export const documents = ["ledgers/1", "ledgers/2", "ledgers/3", "ledgers/4"] as const;
export const rows = ["accounts/1", "accounts/2"] as const;
export const documentTimes = { ttlMs: 500, maxTtlMs: 800, nodeTimeoutMs: 80, connectTimeoutMs: 500 };
const { ttlMs } = documentTimes;
const SHORT_TTL_MS = 180;

/** What a client uses for its work. */
export interface Dependencies {
  readonly fenced: boolean;
  readonly chance: Chance;
  readonly lock: RecordedLock;
  readonly recorder: Recorder;
  /** A gateway for the next call. */
  readonly gateway: () => GatewayClient;
  readonly byClient: Route;
  readonly byFetch: Route;
  /** Of clients that have a table of their own. */
  readonly table: GuardedTable | undefined;
  readonly pause: (forMs: number) => Promise<void>;
}

export type Work = (dependencies: Dependencies) => Promise<"stored" | "not stored">;

/** Once, by the client's own shortest way. */
export const simple: Work = async ({ chance, lock, recorder, gateway }) => {
  const resource = chance.one(documents);
  const id = recorder.name();
  let held: HeldLease | undefined;
  let sent = false;
  const locker = {
    acquire: async (name: string): Promise<HeldLease> => {
      held = await lock.acquire(name, { ttlMs, renew: true });
      return held;
    },
  };
  try {
    const stored = await withResource<Document>(locker, gateway(), resource, (document, { rev, lease }) => {
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

/** Several writes of one lease, sometimes with a wait between them in which the lease may end. */
export const several: Work = async (dependencies) => {
  const { chance } = dependencies;
  const route = chance.happens(0.5) ? dependencies.byFetch : dependencies.byClient;
  await using lease = await dependencies.lock.acquire(chance.one(documents), { ttlMs: chance.one([ttlMs, SHORT_TTL_MS]) });
  return await writeSome(dependencies, { route, lease, writes: chance.between(1, 3) });
};

/** Stopped by a signal between the read and the write, past the end of the lease. */
export const latecomer: Work = async (dependencies) => {
  const { chance } = dependencies;
  const route = !dependencies.fenced || chance.happens(0.5) ? dependencies.byFetch : dependencies.byClient;
  await using lease = await dependencies.lock.acquire(chance.one(documents), { ttlMs: SHORT_TTL_MS });
  return await writeSome(dependencies, { route, lease, writes: 1, pauseMs: SHORT_TTL_MS + chance.between(10, 400) });
};

/** Removes the document and makes it again, under one lease or two. */
export const deletion: Work = async (dependencies) => {
  const { chance, recorder, byFetch, byClient } = dependencies;
  const route = chance.happens(0.5) ? byFetch : byClient;
  const resource = chance.one(documents);
  await using lease = await dependencies.lock.acquire(resource, { ttlMs });
  const { seen } = await recorder.seal(route, resource, lease.token);
  if (seen?.document == null) return "not stored";
  const planned = { resource, lease, shows: "token" } as const;
  const removed = await recorder.write(route, { ...planned, kind: "delete", seq: 1, on: seen });
  if (removed.seen === undefined) return "not stored";
  if (chance.happens(0.5)) await recorder.write(route, { ...planned, kind: "put", seq: 2, on: removed.seen });
  return "stored";
};

/** Two documents under one lease, in one transaction: both or none. */
export const pair: Work = async ({ chance, lock, recorder, gateway, byClient }) => {
  const resources = chance.some(documents, 2);
  await using lease = await lock.acquire(resources, { ttlMs });
  const { token } = lease;
  const group = recorder.name();
  const operations = [];
  const ids: string[] = [];
  for (const resource of resources) {
    const { seen } = await recorder.seal(byClient, resource, token);
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
export const guarded: Work = async ({ chance, lock, recorder, table }) => {
  if (table === undefined) return "not stored";
  const resource = chance.one(rows);
  await using lease = await lock.acquire(resource, { ttlMs });
  const by = recorder.name();
  const facts = { id: by, kind: "guarded", via: "guard", resource, token: lease.token } as const;
  recorder.sent(facts);
  const onRead = (seen: Seen): void => recorder.sent({ ...facts, on: basis(seen) });
  const answer = await table.write({ resource, token: lease.token, by, onRead });
  recorder.answered(by, answer);
  return answer.outcome === "done" ? "stored" : "not stored";
};

/** Only looks. */
export const read: Work = async ({ chance, recorder, byFetch, byClient }) => {
  await recorder.get(chance.happens(0.5) ? byFetch : byClient, chance.one(documents));
  return "not stored";
};

interface SomeWrites {
  readonly route: Route;
  readonly lease: HeldLease;
  readonly writes: number;
  /** Before the first write. */
  readonly pauseMs?: number;
}

async function writeSome({ chance, recorder, fenced, pause }: Dependencies, { route, lease, writes, pauseMs }: SomeWrites) {
  const { resource, token } = lease;
  let { seen } = await recorder.seal(route, resource, token);
  for (let seq = 1; seq <= writes && seen !== undefined; seq++) {
    if (pauseMs !== undefined) await pause(pauseMs);
    else if (chance.happens(0.15)) await sleep(chance.between(1, ttlMs));
    // Given the lease, the client checks it; given the token, only the fence stops a late write.
    const shows = fenced && chance.happens(0.3) ? "lease" : "token";
    const kind = seen.document === null || chance.happens(0.7) ? "put" : "patch";
    ({ seen } = await recorder.write(route, { kind, resource, seq, on: seen, lease, shows }));
  }
  return seen === undefined ? "not stored" : "stored";
}
