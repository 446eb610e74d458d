// Why the fence lives in the row it guards. Each control is a plausible way to write the check, run
// in the same race: token 34 sees a fence of 33, token 35 raises it and writes, then 34 writes. The
// controls lose what 35 wrote. The statement does not, and neither does a stricter isolation level,
// which fails instead.
import type pg from "pg";
import { put, runStatement, storedValue, ways } from "../support/statement.js";
import { type Connect, describe, expect, test, uniqueName, untilSomebodyWaits } from "../support/store.js";

interface Race {
  readonly newer: pg.Client;
  readonly stale: pg.Client;
  readonly observer: pg.Client;
}

/**
 * Token 35 has written and not yet committed; token 34's write starts, waits for the row, and
 * continues once 35 has committed.
 */
async function race(
  { newer, stale, observer }: Race,
  writes: { newer: () => Promise<unknown>; stale: () => Promise<unknown> },
): Promise<unknown> {
  await newer.query("begin");
  await writes.newer();
  const outcome = Promise.allSettled([writes.stale()]);
  await untilSomebodyWaits(observer);
  await newer.query("commit");
  const [settled] = await outcome;
  await stale.query("rollback").catch(() => undefined);
  return settled?.status === "rejected" ? settled.reason : undefined;
}

async function racers(connect: Connect): Promise<Race> {
  return { newer: await connect(), stale: await connect(), observer: await connect() };
}

describe("a fence in another table than the data", () => {
  const tables =
    "create table if not exists fences (resource text primary key, token bigint); create table if not exists data (resource text primary key, value text)";

  async function setUp(client: pg.Client, resource: string): Promise<void> {
    await client.query(tables);
    await client.query("insert into fences values ($1, 33)", [resource]);
    await client.query("insert into data values ($1, 'by 33')", [resource]);
  }
  const raise = "update fences set token = $2 where resource = $1 and token <= $2";
  const bySubSelect = "update data set value = $3 where resource = $1 and (select token from fences where resource = $1) <= $2";
  const byJoin =
    "update data set value = $3 from fences where fences.resource = data.resource and data.resource = $1 and fences.token <= $2";

  for (const [name, write] of [
    ["a sub-select", bySubSelect],
    ["a join", byJoin],
  ] as const) {
    test(`control: checked by ${name}, token 34 overwrites what token 35 wrote`, async ({ connect }) => {
      const resource = uniqueName();
      const clients = await racers(connect);
      await setUp(clients.observer, resource);
      await race(clients, {
        newer: async () => {
          await clients.newer.query(raise, [resource, 35]);
          await clients.newer.query(write, [resource, 35, "by 35"]);
        },
        stale: () => clients.stale.query(write, [resource, 34, "by 34"]),
      });
      const { rows } = await clients.observer.query("select value, token from data natural join fences where resource = $1", [resource]);
      expect(rows).toEqual([{ value: "by 34", token: "35" }]);
    });
  }
});

test("control: read the fence, then write, and token 34 overwrites what token 35 wrote", async ({ connect }) => {
  const resource = uniqueName();
  const [newer, stale] = [await connect(), await connect()];
  await runStatement({ client: newer }, put(resource, 33, '"by 33"'));
  const { rows } = await stale.query<{ token: string }>("select token from palisade.resources where resource = $1", [resource]);
  expect(Number(rows[0]?.token)).toBeLessThanOrEqual(34); // The check passes; then the process pauses.
  await runStatement({ client: newer }, put(resource, 35, '"by 35"'));
  await stale.query("update palisade.resources set value = $2, rev = rev + 1 where resource = $1", [resource, '"by 34"']);
  expect(await storedValue(newer, resource)).toBe('"by 34"');
});

for (const way of ways) {
  test(`G1 in the same race the statement keeps what token 35 wrote (rows: ${way})`, async ({ connect }) => {
    const resource = uniqueName();
    const clients = await racers(connect);
    await runStatement({ client: clients.observer }, put(resource, 33, '"by 33"'));
    let accepted: string[] = [resource];
    await race(clients, {
      newer: () => runStatement({ client: clients.newer, way }, put(resource, 35, '"by 35"')),
      stale: async () => {
        accepted = await runStatement({ client: clients.stale, way }, put(resource, 34, '"by 34"'));
      },
    });
    expect(accepted).toEqual([]);
    expect(await storedValue(clients.observer, resource)).toBe('"by 35"');
  });
}

test("G1 the first two writes of a resource race, and the newer one remains in either order of arrival", async ({ connect }) => {
  for (const [first, second] of [
    [35, 34],
    [34, 35],
  ] as const) {
    const resource = uniqueName();
    const clients = await racers(connect);
    await race(clients, {
      newer: () => runStatement({ client: clients.newer }, put(resource, first, `"by ${first}"`)),
      stale: () => runStatement({ client: clients.stale }, put(resource, second, `"by ${second}"`)),
    });
    expect(await storedValue(clients.observer, resource)).toBe('"by 35"');
  }
});

for (const level of ["repeatable read", "serializable"]) {
  for (const way of ways) {
    test(`G1 under ${level} (rows: ${way}) the race ends with 40001 and never with a stale write`, async ({ connect }) => {
      const resource = uniqueName();
      const clients = await racers(connect);
      await runStatement({ client: clients.observer }, put(resource, 33, '"by 33"'));
      const failure = await race(clients, {
        newer: () => runStatement({ client: clients.newer, way }, put(resource, 35, '"by 35"')),
        stale: async () => {
          await clients.stale.query(`begin isolation level ${level}`);
          await runStatement({ client: clients.stale, way }, put(resource, 34, '"by 34"'));
        },
      });
      expect(failure).toMatchObject({ code: "40001" });
      expect(await storedValue(clients.observer, resource)).toBe('"by 35"');
    });
  }
}

test("a refusal can only hint at the current token: the statement that refuses 34 because of 35 still sees 33", async ({ connect }) => {
  const resource = uniqueName();
  const clients = await racers(connect);
  await runStatement({ client: clients.observer }, put(resource, 33, '"by 33"'));
  // What a statement could report by itself: the token in its snapshot, beside the row count of the
  // refused write.
  const reporting = `with written as (update palisade.resources as stored set holder = 'x' where resource = $1 and token <= 34 returning 1)
    select (select token from palisade.resources where resource = $1) as reported, (select count(*) from written) as written`;
  let answer: unknown;
  await race(clients, {
    newer: () => runStatement({ client: clients.newer }, put(resource, 35, '"by 35"')),
    stale: async () => {
      answer = (await clients.stale.query(reporting, [resource])).rows[0];
    },
  });
  expect(answer).toEqual({ reported: "33", written: "0" });
});
