// Answers while Postgres is away, silent or read-only: 503 for what was certainly not applied, 504
// for what may have been, never a 500.
import { queryAt } from "@palisade/testkit";
import { test as base, describe, eventually, expect, uniqueName } from "../support/fixtures.js";
import { holderOf } from "../support/sql.js";
import { get, put, seal, send } from "../support/wire.js";

const notApplied = { status: 503, json: { code: "unavailable", outcome: "not_applied" } };
const unknown = { status: 504, json: { code: "outcome_unknown", outcome: "unknown" } };
const statusOf = async (url: string): Promise<number> => (await fetch(url)).status;

const test = base.extend("behindProxy", async ({ database, proxy, startGateway }) => {
  // Postgres has four fifths of the time for a write before its own timer ends it: enough even
  // where it has to wait for the processor.
  const limits = { writeTimeoutMs: 1_000, batchLockWaitMs: 500, readTimeoutMs: 300, connectTimeoutMs: 300, drainMs: 100 } as const;
  const gateway = await startGateway({ databaseUrl: proxy.urlOf(database.url), migrations: "off", ...limits });
  /** On a connection that stays open. Opening one may take longer than the short timeout. */
  const write = (name: string, n: number) =>
    eventually(async () => (await put(gateway.url, name, { token: 5, value: { n } })).status).toBeOneOf([200, 201]);
  return { gateway, write };
});

describe("while Postgres", () => {
  test("G3 cannot be reached, all is refused as not applied, and served when it is back", async ({
    proxy,
    behindProxy: { gateway, write },
    gateway: other,
  }) => {
    const name = uniqueName();
    await write(name, 1);
    await proxy.refuse();
    // The first write may still be sent on a connection whose end has not been noticed.
    await eventually(async () => (await put(gateway.url, name, { token: 5, value: { n: 2 } })).status).toBe(503);
    const refused = await put(gateway.url, name, { token: 5, value: { n: 3 } });
    expect(refused).toMatchObject({ ...notApplied, headers: { "retry-after": expect.stringMatching(/^[1-9]\d*$/) } });
    const headers = ["Content-Type", "application/json"];
    const operations = [{ op: "seal", resource: name, token: 6 }];
    const change = { action: "raise", token: 9, reason: "why" };
    for (const answer of [
      await get(gateway.url, name),
      await seal(gateway.url, name, 6),
      await send(gateway.url, { method: "GET", path: "/v1/resources" }),
      await send(gateway.url, { method: "POST", path: "/v1/transactions", headers, body: JSON.stringify({ operations }) }),
      await send(gateway.url, { method: "POST", path: `/v1/fences/${name}`, headers, body: JSON.stringify(change) }),
    ])
      expect(answer).toMatchObject(notApplied);
    expect([await statusOf(`${gateway.adminUrl}/ready`), await statusOf(`${gateway.adminUrl}/live`)]).toEqual([503, 200]);
    expect(await get(other.url, name)).toMatchObject({ headers: { "fencing-token": "5" } });
    await proxy.heal();
    await write(name, 4);
  });

  test("G3 does not answer, a write is unknown and a read is refused; the write may well be there", async ({
    proxy,
    behindProxy: { gateway, write },
    gateway: other,
  }) => {
    const name = uniqueName();
    await write(name, 1);
    proxy.dropReplies();
    expect(await put(gateway.url, name, { token: 5, value: { n: 2 } })).toMatchObject(unknown);
    await eventually(async () => (await get(other.url, name)).json.n).toBe(2);
    expect(await get(gateway.url, name)).toMatchObject(notApplied);
    await proxy.heal();
    await eventually(async () => (await get(gateway.url, name)).status).toBe(200);
  });

  test("is read-only, as a standby, writes are refused as not applied and reads go on", async ({ postgres, startGateway }) => {
    const database = await postgres.createDatabase({ from: "gateway" });
    await queryAt(database.url, `alter database "${database.name}" set default_transaction_read_only = on`);
    const gateway = await startGateway({ databaseUrl: database.url });
    expect(await put(gateway.url, "x", { token: 5, value: {} })).toMatchObject(notApplied);
    expect(await get(gateway.url, "x")).toMatchObject({ status: 404 });
    expect(await statusOf(`${gateway.adminUrl}/ready`)).toBe(503);
    await gateway.close();
    await database.drop();
  });

  test("has the row locked by another session, the write is told to try again", async ({ connect, startGateway }) => {
    const gateway = await startGateway({ batchLockWaitMs: 50 });
    const name = uniqueName();
    await put(gateway.url, name, { token: 5, value: {} });
    const other = await holderOf(connect, name);
    expect(await put(gateway.url, name, { token: 5, value: {} })).toMatchObject({
      status: 409,
      json: { code: "contention", outcome: "not_applied" },
      headers: { "retry-after": "1" },
    });
    await other.query("rollback");
    expect(await put(gateway.url, name, { token: 5, value: {} })).toMatchObject({ status: 200 });
  });
});
