// Traffic of the whole system: reads, modifies and writes documents under the lock until it is told
// to finish, and then until one more write of it is stored. No client asks whether the lease is
// still valid before it writes: refusing a late write is the store's business here.
import { setTimeout as sleep } from "node:timers/promises";
import { createGatewayClient, type GatewayClient, withResource } from "@palisade/client";
import { guard } from "@palisade/guard";
import pg from "pg";
import { chanceOf } from "../chance.js";
import { type Answer, type Document, Journal, type Seen, successor } from "../history.js";
import type { DocumentOrders, Process, Traffic } from "./messages.js";
import { type HeldLease, palisadeLock, RecordedLock } from "./recorded-lock.js";
import { basis, type Documents, Recorder, refused, unfenced } from "./routes.js";

/** Documents behind the gateway, and rows of a table that its owner guards. */
export const documents = ["ledgers/1", "ledgers/2", "ledgers/3", "ledgers/4"] as const;
export const rows = ["accounts/1", "accounts/2"] as const;
export const documentTimes = { ttlMs: 500, maxTtlMs: 800, nodeTimeoutMs: 80, connectTimeoutMs: 500 };
const { ttlMs } = documentTimes;
const SHORT_TTL_MS = 180;
const retry = { attempts: 3, firstPauseMs: 20, longestPauseMs: 200 };

/** Whether a write of it was stored. */
type Work = () => Promise<boolean>;

export function documentTraffic(orders: DocumentOrders, self: Process): Traffic {
  const { name, client, fenced, ownsTable, gatewayUrls, apiKey, storeUrl } = orders;
  const chance = chanceOf(orders.seed, name);
  const journal = new Journal(orders.journal);
  const lock = new RecordedLock(palisadeLock(orders.redisUrls, { ...documentTimes, label: name }), journal);
  const gateways = gatewayUrls.map((url) => createGatewayClient({ url, apiKey, timeoutMs: 1_500, retry }));
  const gateway = (): GatewayClient => chance.one(gateways);
  const control = fenced ? undefined : unfenced(storeUrl);
  const store = (): Documents => control ?? (gateway() as unknown as Documents);
  const recorder = new Recorder({ store, via: fenced ? "client" : "unfenced", author: name, lines: journal, self });
  const table = guardedTable(storeUrl);
  journal.recordPauses(client);

  /** Once, by the client's own shortest way. */
  const simple: Work = async () => {
    const resource = chance.one(documents);
    const id = recorder.name();
    let held: HeldLease | undefined;
    let sent = false;
    const locker = {
      acquire: async (of: string): Promise<HeldLease> => {
        held = await lock.acquire(of, { ttlMs, renew: true });
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
      return true;
    } catch (error) {
      const { name, code, outcome } = error as { name: string; code?: string; outcome?: string };
      if (held === undefined && code !== undefined) return false; // The lock said no.
      if (name !== "GatewayError") throw error;
      if (sent) recorder.answered(id, refused({ outcome: outcome === "unknown" ? "unknown" : "not_applied", code: code as never }));
      return false;
    }
  };

  const writeSome = async (lease: HeldLease, writes: number, pauseMs?: number): Promise<boolean> => {
    const { resource, token } = lease;
    let seen = await recorder.seal(resource, token);
    for (let seq = 1; seq <= writes && seen !== undefined; seq++) {
      if (pauseMs !== undefined) await self.pause(pauseMs);
      else if (chance.happens(0.15)) await sleep(chance.between(1, ttlMs));
      // Given the lease, the client checks it; given the token, only the fence stops a late write.
      const shows = fenced && chance.happens(0.3) ? "lease" : "token";
      const kind = seen.document === null || chance.happens(0.7) ? "put" : "patch";
      seen = await recorder.write({ kind, resource, seq, on: seen, lease, shows });
    }
    return seen !== undefined;
  };

  /** Several writes of one lease, sometimes with a wait between them in which the lease may end. */
  const several: Work = async () => {
    await using lease = await lock.acquire(chance.one(documents), { ttlMs: chance.one([ttlMs, SHORT_TTL_MS]) });
    return await writeSome(lease, chance.between(1, 3));
  };

  /** Stopped by a signal between the read and the write, past the end of the lease. */
  const latecomer: Work = async () => {
    await using lease = await lock.acquire(chance.one(documents), { ttlMs: SHORT_TTL_MS });
    return await writeSome(lease, 1, SHORT_TTL_MS + chance.between(10, 400));
  };

  /** Removes the document and makes it again, under one lease or two. */
  const deletion: Work = async () => {
    const resource = chance.one(documents);
    await using lease = await lock.acquire(resource, { ttlMs });
    const seen = await recorder.seal(resource, lease.token);
    if (seen?.document == null) return false;
    const planned = { resource, lease, shows: "token" } as const;
    const removed = await recorder.write({ ...planned, kind: "delete", seq: 1, on: seen });
    if (removed === undefined) return false;
    if (chance.happens(0.5)) await recorder.write({ ...planned, kind: "put", seq: 2, on: removed });
    return true;
  };

  /** Two documents under one lease, in one transaction: both or none. */
  const pair: Work = async () => {
    const resources = chance.some(documents, 2);
    await using lease = await lock.acquire(resources, { ttlMs });
    const { token } = lease;
    const group = recorder.name();
    const calls = [];
    for (const resource of resources) {
      const seen = await recorder.seal(resource, token);
      if (seen === undefined) return false;
      calls.push({ id: recorder.name(), resource, seen });
    }
    for (const { id, resource, seen } of calls)
      recorder.sent({ id, kind: "put", via: "transaction", resource, token, seq: 1, on: basis(seen), group });
    const puts = calls.map(({ id, resource, seen }) => ({ op: "put", resource, seq: 1, value: successor(seen.document, id) }) as const);
    const result = await gateway().transaction(puts, { token });
    for (const [i, { id }] of calls.entries()) {
      const rev = result.ok ? result.results[i]?.rev : undefined;
      recorder.answered(id, result.ok ? { outcome: "done", ...(rev === undefined ? {} : { rev }) } : refused(result));
    }
    return result.ok;
  };

  /** A row of the client's own table, in its own transaction. */
  const guarded: Work = async () => {
    const resource = chance.one(rows);
    await using lease = await lock.acquire(resource, { ttlMs });
    const by = recorder.name();
    const facts = { id: by, kind: "guarded", via: "guard", resource, token: lease.token } as const;
    recorder.sent(facts);
    const onRead = (seen: Seen): void => recorder.sent({ ...facts, on: basis(seen) });
    const answer = await table.write({ resource, token: lease.token, by, onRead });
    recorder.answered(by, answer);
    return answer.outcome === "done";
  };

  /** Only looks. */
  const read: Work = async () => {
    await recorder.get(chance.one(documents));
    return false;
  };

  const usual = [simple, simple, simple, several, several, several, pair, deletion, latecomer, read, read];
  const owners = ownsTable ? [guarded, guarded, guarded] : [];
  const works = fenced ? [...usual, ...owners] : [several, deletion, latecomer, latecomer];
  /** A refusal by the lock is an ordinary outcome. */
  const attempt = (work: Work): Promise<boolean> =>
    work().catch((error: Error) => {
      if (error.name === "LockError") return false;
      throw error;
    });
  return {
    // A replacement may start under a fault; every later call waits for the nodes as well.
    ready: () => lock.ready().catch(() => undefined),
    work: async () => {
      while (!self.over.aborted) {
        await attempt(chance.one(works));
        if (chance.happens(0.3)) await sleep(chance.between(0, 20));
      }
      for (const last of [fenced ? simple : several, ...owners.slice(0, 1)]) while (!(await attempt(last))) await sleep(20);
    },
    close: async () => {
      await lock.close();
      await table.close();
      await control?.close();
      journal.close();
    },
  };
}

export const GUARDED_TABLES = `
  create table if not exists accounts (resource text primary key, rev bigint not null, value jsonb not null);
  create table if not exists account_entries (resource text, rev bigint, token bigint, by text, primary key (resource, rev))`;

interface GuardedWrite {
  readonly resource: string;
  readonly token: number;
  readonly by: string;
  /** Called in the transaction after the read and before the write. */
  readonly onRead: (seen: Seen) => void;
}

/** The fence inside a transaction on a table of the client's own: guard, read, write, commit. */
function guardedTable(connectionString: string) {
  const pool = new pg.Pool({ connectionString, max: 1, connectionTimeoutMillis: 500, query_timeout: 1_500 });
  pool.on("error", ignored);
  return {
    write: async (wanted: GuardedWrite): Promise<Answer> => {
      const client = await pool.connect().catch(ignored);
      if (client === undefined) return { outcome: "refused", code: "no connection" };
      let [warned, committing] = [false, false];
      const onNotice = (): void => {
        warned = true;
      };
      client.on("notice", onNotice).on("error", ignored);
      try {
        await client.query("begin");
        await guard(client, { resource: wanted.resource, token: wanted.token, holder: wanted.by });
        const seen = await change(client, wanted);
        committing = true;
        await client.query("commit");
        client.off("notice", onNotice).off("error", ignored).release();
        // Committed here, perhaps not on the standby.
        return warned ? { outcome: "unknown", code: "warned" } : { outcome: "done", rev: seen.rev };
      } catch (error) {
        client.release(true); // The state of the session is unknown, and a new one is cheap.
        const { code, message } = error as { code?: string; message: string };
        return { outcome: committing ? "unknown" : "refused", code: code ?? message };
      }
    },
    close: () => pool.end(),
  };
}

// A connection broke: the statement that waits on it fails, and its answer says so.
function ignored(): undefined {}

async function change(client: pg.ClientBase, { resource, token, by, onRead }: GuardedWrite): Promise<Seen> {
  const { rows } = await client.query<{ rev: number; value: Document }>("select rev::int, value from accounts where resource = $1", [
    resource,
  ]);
  const before: Seen = rows[0] === undefined ? { rev: 0, document: null } : { rev: rows[0].rev, document: rows[0].value };
  onRead(before);
  const after = { rev: before.rev + 1, document: successor(before.document, by) };
  const value = JSON.stringify(after.document);
  await client.query(
    "insert into accounts (resource, rev, value) values ($1, $2, $3) on conflict (resource) do update set rev = $2, value = $3",
    [resource, after.rev, value],
  );
  await client.query("insert into account_entries (resource, rev, token, by) values ($1, $2, $3, $4)", [resource, after.rev, token, by]);
  return after;
}
