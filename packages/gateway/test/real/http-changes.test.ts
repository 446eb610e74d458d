// The stream of changes: exactly what Postgres committed, in order, over reconnects, with writers
// beside it, through gateways that are killed.
import { request as httpRequest } from "node:http";
import { type Change, createGatewayClient } from "@palisade/client";
import { makeApiKey } from "@palisade/gateway";
import type { TestDatabase } from "@palisade/testkit";
import pg from "pg";
import { test as base, describe, eventually, expect, uniqueName } from "../support/fixtures.js";
import { put, send } from "../support/wire.js";

const test = base
  .extend("connectTo", ({ database }: { database: TestDatabase }, { onCleanup }): (() => Promise<pg.Client>) => {
    const clients: pg.Client[] = [];
    onCleanup(async () => {
      await Promise.all(clients.map((client) => client.end()));
    });
    return async () => {
      const client = new pg.Client({ connectionString: database.url });
      await client.connect();
      clients.push(client);
      return client;
    };
  })
  .extend("owner", async ({ connectTo }): Promise<pg.Client> => await connectTo());

/** What a reader was told; it reads until `stop`. */
function reading(changes: AsyncGenerator<Change>): { readonly told: Change[]; readonly done: Promise<void> } {
  const told: Change[] = [];
  const done = (async () => {
    for await (const change of changes) told.push(change);
  })();
  return { told, done };
}

const committed = async (owner: pg.Client, prefix: string): Promise<readonly string[]> => {
  const { rows } = await owner.query<{ name: string }>(
    "select resource || '@' || rev as name from palisade.history where starts_with(resource, $1) order by resource, rev",
    [prefix],
  );
  return rows.map(({ name }) => name);
};
const named = (changes: readonly Change[]): string[] => changes.map(({ resource, rev }) => `${resource}@${rev}`);

/** Each change once, and of each resource in the order of its revisions. */
function checkOrder(told: readonly Change[]): void {
  const seen = new Map<string, number>();
  let before = 0;
  for (const { position, resource, rev } of told) {
    expect(position).toBeGreaterThan(before);
    expect({ resource, rev }).toEqual({ resource, rev: (seen.get(resource) ?? 0) + 1 });
    seen.set(resource, rev);
    before = position;
  }
}

const streamOf = (url: string, query: string, ...headers: string[]) => send(url, { method: "GET", path: `/v1/changes${query}`, headers });

describe("the stream of changes", () => {
  test("G8 tells what concurrent writers committed through two gateways, each write once and in order, over cut connections", async ({
    startGateway,
    owner,
  }) => {
    const gateways = [await startGateway({ history: "on" }), await startGateway({ history: "on" })];
    const prefix = `${uniqueName()}/`;
    const ended = new AbortController();
    let tries = 0;
    // Each connection is cut after a while, and the next one goes to the other gateway.
    const cutting: typeof fetch = (url, init) => {
      tries += 1;
      const to = String(url).replace("http://gateway.invalid", gateways[tries % 2]?.url ?? "");
      const cut = AbortSignal.timeout(40 + 40 * (tries % 5));
      return fetch(to, { ...init, signal: AbortSignal.any([cut, ...(init?.signal ? [init.signal] : [])]) });
    };
    const client = createGatewayClient({ url: "http://gateway.invalid", fetch: cutting, retry: { firstPauseMs: 1, longestPauseMs: 5 } });
    const { told, done } = reading(client.changes({ prefix, after: 0, signal: ended.signal }));
    const write = async (writer: number) => {
      for (let n = 0; n < 40; n += 1) {
        const url = gateways[(writer + n) % 2]?.url ?? "";
        expect(await put(url, `${prefix}${(writer * 7 + n) % 11}`, { token: 5, value: { n } })).toMatchObject({
          status: expect.any(Number),
        });
      }
    };
    await Promise.all(Array.from({ length: 8 }, (_, writer) => write(writer)));
    const all = await committed(owner, prefix);
    expect(all).toHaveLength(320);
    await eventually(() => told.length).toBeGreaterThanOrEqual(all.length);
    ended.abort();
    await done;
    checkOrder(told);
    expect(named(told).sort()).toEqual([...all].sort());
    expect(tries).toBeGreaterThan(2);
  });

  test("G8 waits for a transaction that wrote earlier and commits later, and tells nothing of one that is rolled back", async ({
    gateway: { url },
    owner,
    connectTo,
  }) => {
    const prefix = `${uniqueName()}/`;
    const ended = new AbortController();
    const { told, done } = reading(createGatewayClient({ url }).changes({ prefix, signal: ended.signal, after: await lastOf(owner) }));
    const record = (client: pg.Client, name: string) =>
      client.query("insert into palisade.history (rev, token, seq, written_at, resource, op) values (1, 5, 0, now(), $1, 'put')", [name]);
    const [late, never] = [await connectTo(), await connectTo()];
    await late.query("begin");
    await record(late, `${prefix}late`);
    await never.query("begin");
    await record(never, `${prefix}never`);
    await put(url, `${prefix}between`, { token: 5, value: 1 });
    await eventually(() => named(told)).toEqual([`${prefix}between@1`]);
    await late.query("commit");
    await never.query("rollback");
    await put(url, `${prefix}between`, { token: 5, value: 2 });
    await eventually(() => told.length).toBe(3);
    ended.abort();
    await done;
    checkOrder(told);
    expect(named(told).slice(1).sort()).toEqual([`${prefix}between@2`, `${prefix}late@1`]);
  });

  test("G8 tells a reader that is pages behind all of it, in order", async ({ gateway: { url }, owner }) => {
    const [name, after, ended] = [uniqueName(), await lastOf(owner), new AbortController()];
    await owner.query(
      "insert into palisade.history (rev, token, seq, written_at, resource, op) select i, 5, 0, now(), $1, 'put' from generate_series(1, 1200) i",
      [name],
    );
    const { told, done } = reading(createGatewayClient({ url }).changes({ after, prefix: name, signal: ended.signal }));
    await eventually(() => told.length).toBe(1_200);
    ended.abort();
    await done;
    checkOrder(told);
  });

  test("G8 gives places in one session at a time, so a later place is never seen before an earlier one", async ({ owner, connectTo }) => {
    const name = uniqueName();
    const record = (rev: number) =>
      owner.query("insert into palisade.history (rev, token, seq, written_at, resource, op) values ($2, 5, 0, now(), $1, 'put')", [
        name,
        rev,
      ]);
    const order = async (client: pg.Client) =>
      (await client.query<{ ordered: number | null }>("select palisade.order_changes(1000) as ordered")).rows[0]?.ordered;
    const other = await connectTo();
    await other.query("begin");
    await order(other); // From here on no gateway of this database gives places.
    await record(1);
    expect(await order(other)).toBe(1);
    await record(2);
    await owner.query("set lock_timeout = 1000");
    expect(await order(owner)).toBe(null);
    await other.query("commit");
    await order(owner);
    const { rows } = await owner.query(
      "select rev::integer, position - first_value(position) over (order by rev) as place from palisade.history where resource = $1",
      [name],
    );
    expect(rows).toEqual([
      { rev: 1, place: "0" },
      { rev: 2, place: "1" },
    ]);
  });

  test("G8 goes on behind a gateway that was killed, without a gap", async ({ startProgram, database, owner }) => {
    const env = { DATABASE_URL: database.url, PALISADE_HISTORY: "on" };
    let current = await startProgram(env);
    const prefix = `${uniqueName()}/`;
    const ended = new AbortController();
    const following: typeof fetch = (url, init) => fetch(String(url).replace("http://gateway.invalid", current.url), init);
    const client = createGatewayClient({ url: "http://gateway.invalid", fetch: following, retry: { firstPauseMs: 5, longestPauseMs: 50 } });
    const { told, done } = reading(client.changes({ prefix, after: await lastOf(owner), signal: ended.signal }));
    for (let round = 0; round < 3; round += 1) {
      const { url } = current;
      const writes = Array.from({ length: 20 }, (_, n) => put(url, `${prefix}${n % 4}`, { token: 5, value: n }).catch(() => undefined));
      await Promise.race(writes);
      current.child.signal("SIGKILL");
      await Promise.all(writes);
      current = await startProgram(env);
    }
    await put(current.url, `${prefix}last`, { token: 5, value: 1 });
    const all = await committed(owner, prefix);
    await eventually(() => told.length).toBeGreaterThanOrEqual(all.length);
    ended.abort();
    await done;
    checkOrder(told);
    expect(named(told).sort()).toEqual([...all].sort());
  });

  test("G8 says that changes are gone when the reader's place is no longer kept, was never kept, or never given", async ({
    gateway: { url },
    owner,
  }) => {
    const client = createGatewayClient({ url });
    const name = uniqueName();
    const next = async (after: number) => await client.changes({ after }).next();
    const old =
      "insert into palisade.history (rev, token, seq, written_at, resource, op) values ($2, 5, 0, now() - interval '1 hour', $1, 'put')";
    await owner.query(old, [name, 1]);
    const before = await lastOf(owner);
    await owner.query("select palisade.order_changes(1000)");
    const place = await lastOf(owner);
    expect(await next(place - 1)).toMatchObject({ value: { resource: name, position: place } });
    await owner.query("select palisade.forget_history(interval '10 minutes', 1000)");
    await expect(next(before)).rejects.toMatchObject({ name: "GatewayError", code: "changes_gone" });
    // A write that was forgotten before it had a place: whoever was up to date has missed it.
    await owner.query(old, [name, 2]);
    await owner.query("select palisade.forget_history(interval '10 minutes', 1000)");
    await expect(next(place)).rejects.toMatchObject({ code: "changes_gone" });
    await expect(next((await lastOf(owner)) + 1)).rejects.toMatchObject({ code: "changes_gone" });
    expect(await streamOf(url, "?after=1", "Last-Event-ID", "999999")).toMatchObject({ status: 410, json: { code: "changes_gone" } });
  });

  test("is told only under a scope that covers the prefix, by a gateway that keeps history", async ({ startGateway }) => {
    const worker = makeApiKey();
    const { url } = await startGateway({ history: "on", apiKeys: [{ id: "w", sha256: worker.sha256, scopes: ["read:orders/"] }] });
    const as = ["Authorization", `Bearer ${worker.key}`];
    expect(await streamOf(url, "?prefix=orders", ...as)).toMatchObject({ status: 403, json: { code: "forbidden_scope" } });
    expect(await streamOf(url, "?prefix=orders/")).toMatchObject({ status: 401 });
    const without = await startGateway();
    expect(await streamOf(without.url, "")).toMatchObject({ status: 404, json: { code: "not_found" } });
    for (const query of ["?after=-1", "?after=x", "?since=1"])
      expect(await streamOf(url, `${query}&prefix=orders/`, ...as)).toMatchObject({ status: 400, json: { code: "query_invalid" } });
    for (const id of ["x", "-1"]) expect(await streamOf(url, "?prefix=orders/", ...as, "Last-Event-ID", id)).toMatchObject({ status: 400 });
    expect(() => createGatewayClient({ url }).changes({ after: -1 })).toThrow(RangeError);
  });

  test("G6 is told to so many readers at a time, and a reader that takes nothing is ended", async ({ startGateway, owner }) => {
    const { url } = await startGateway({ history: "on", maxChangeReaders: 1, idleTimeoutMs: 3_000 });
    const name = uniqueName();
    await put(url, name, { token: 5, value: 1 });
    const after = await lastOf(owner);
    await owner.query(
      "insert into palisade.history (rev, token, seq, written_at, resource, op, holder) select i, 5, 0, now(), $1, 'put', repeat('x', 500) from generate_series(2, 30000) i",
      [name],
    );
    const slow = httpRequest(`${url}/v1/changes?after=${after}`, (response) => response.pause());
    slow.on("error", () => undefined).end();
    const another = async () => (await streamOf(url, "?after=999999999999")).status;
    await eventually(another).toBe(503);
    await eventually(another).toBe(410);
    slow.destroy();
  });
});

async function lastOf(owner: pg.Client): Promise<number> {
  return Number((await owner.query<{ last: string }>("select last from palisade.changes")).rows[0]?.last);
}
