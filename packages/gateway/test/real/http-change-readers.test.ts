// Readers of the stream of changes that leave early or lose their right to it, and a database that
// gives places a second time.
import { once } from "node:events";
import { connect } from "node:net";
import { createGatewayClient } from "@palisade/client";
import { makeApiKey } from "@palisade/gateway";
import { connectTo, type TestDatabase } from "@palisade/testkit";
import type pg from "pg";
import { test as base, describe, eventually, expect, uniqueName } from "../support/fixtures.js";
import { put, send } from "../support/wire.js";

const test = base.extend("owner", async ({ database }: { database: TestDatabase }, { onCleanup }): Promise<pg.Client> => {
  const client = await connectTo(database.url);
  onCleanup(() => client.end());
  return client;
});

const lastOf = async (owner: pg.Client): Promise<number> =>
  Number((await owner.query<{ last: string }>("select last from palisade.changes")).rows[0]?.last);

describe("the readers of changes", () => {
  test("G6 a reader that leaves before its first page is there gives up its place", async ({ startGateway, owner }) => {
    const { url } = await startGateway({ history: "on", maxChangeReaders: 1 });
    const another = async () => (await send(url, { method: "GET", path: "/v1/changes?after=999999999999" })).status;
    const waiting = "select count(*)::integer as waiting from pg_locks where not granted and relation = 'palisade.changes'::regclass";
    await owner.query("begin; lock table palisade.changes in access exclusive mode");
    const { hostname, port } = new URL(url);
    const leaving = connect(Number(port), hostname);
    leaving.write(`GET /v1/changes?after=0 HTTP/1.1\r\nHost: ${hostname}\r\n\r\n`);
    await eventually(async () => (await owner.query(waiting)).rows).toEqual([{ waiting: 1 }]);
    expect(await another()).toBe(503);
    leaving.resetAndDestroy();
    await once(leaving, "close");
    expect((await fetch(`${url}/openapi.json`)).status).toBe(200); // The gateway has seen the end by now.
    await owner.query("rollback");
    await eventually(another).toBe(410);
  });

  test("tells nothing more under a credential that has expired", async ({ startGateway, owner }) => {
    const [reader, writer] = [makeApiKey(), makeApiKey()];
    const expiresAt = new Date(Date.now() + 3_000).toISOString();
    const { url } = await startGateway({
      history: "on",
      idleTimeoutMs: 900,
      apiKeys: [
        { id: "reader", sha256: reader.sha256, scopes: ["read:"], expiresAt },
        { id: "writer", sha256: writer.sha256, scopes: ["write:"] },
      ],
    });
    const stream = await fetch(`${url}/v1/changes?after=${await lastOf(owner)}`, { headers: { authorization: `Bearer ${reader.key}` } });
    expect(stream.status).toBe(200);
    const name = uniqueName();
    let text = "";
    let isOver = false;
    const told = (async () => {
      for await (const bytes of stream.body as unknown as AsyncIterable<Uint8Array>) text += Buffer.from(bytes).toString();
      isOver = true;
    })();
    await put(url, name, { token: 5, value: 1, headers: ["Authorization", `Bearer ${writer.key}`] });
    await eventually(() => text).toContain(name);
    await eventually(() => isOver).toBe(true);
    await told;
  });

  test("G8 a reader of a database whose places went back waits for the next write and is told it", async ({ startGateway, owner }) => {
    const { url } = await startGateway({ history: "on" });
    const [name, other] = [uniqueName(), uniqueName()];
    const changes = (after: number | undefined) => createGatewayClient({ url }).changes({ after });
    const place = await lastOf(owner);
    await put(url, name, { token: 5, value: 1 });
    // The gateway waits for changes, so it knows the highest place.
    const before = changes(place);
    expect(await before.next()).toMatchObject({ value: { resource: name } });
    await before.return();
    // As after the failover to a server that has not got the last second.
    await owner.query("delete from palisade.history where resource = $1", [name]);
    await owner.query("update palisade.changes set last = $1", [place]);
    const stream = await fetch(`${url}/v1/changes`);
    let text = "";
    const told = (async () => {
      for await (const bytes of stream.body as unknown as AsyncIterable<Uint8Array>) {
        text += Buffer.from(bytes).toString();
        if (text.includes(other)) break;
      }
    })();
    await eventually(() => text).toContain(`id: ${place}\n`);
    await put(url, other, { token: 5, value: 1 });
    await eventually(() => text.includes(other)).toBe(true);
    await told;
    expect(text.split("\n\n").length).toBeLessThan(6);
  });

  test("G8 places are as durable as the writes, whatever the database says of its commits", async ({ startGateway, owner }) => {
    const before = await lastOf(owner);
    await owner.query(
      `alter database ${(await owner.query("select quote_ident(current_database()) as name")).rows[0].name} set synchronous_commit = off`,
    );
    await owner.query(`
      create table seen (commit text);
      create function note() returns trigger language plpgsql security definer as
        $$ begin insert into public.seen values (current_setting('synchronous_commit')); return null; end $$;
      create constraint trigger at_commit after update on palisade.changes deferrable initially deferred
        for each row execute function note()`);
    const { url } = await startGateway({ history: "on" });
    const name = uniqueName();
    await put(url, name, { token: 5, value: 1 });
    const told = createGatewayClient({ url }).changes({ after: before, prefix: name });
    expect(await told.next()).toMatchObject({ value: { resource: name } });
    await told.return();
    expect((await owner.query("select distinct commit from seen")).rows).toEqual([{ commit: "on" }]);
  });
});
