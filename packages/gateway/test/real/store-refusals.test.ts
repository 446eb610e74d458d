// What the log of refused writes does under a flood, and while Postgres is away: it counts what it
// does not keep.
import { MAX_PENDING } from "../../src/store/refusal-log.js";
import { expect, test, uniqueName } from "../support/store.js";

test("G6 a flood is kept up to a bound in one statement, and what is beyond it is counted", async ({ openStore, connect }) => {
  const store = await openStore({ refusedLog: "on" });
  const client = await connect();
  const name = uniqueName();
  const flood = (count: number) => {
    for (let n = 0; n < count; n += 1)
      store.refusals?.note({
        resource: name,
        code: "fencing_token_stale",
        presentedToken: 1,
        currentToken: 2,
        caller: "c",
        at: new Date(),
      });
  };
  const kept = async () =>
    (
      await client.query("select count(*)::integer as kept, sum(missed)::integer as missed from palisade.refusals where resource = $1", [
        name,
      ])
    ).rows[0];
  flood(MAX_PENDING + 700);
  await expect.poll(kept).toEqual({ kept: MAX_PENDING, missed: 700 });
  flood(1);
  await expect.poll(kept).toEqual({ kept: MAX_PENDING + 1, missed: 700 });
  expect(await store.refusals?.read({ prefix: name, limit: 2 })).toMatchObject({ entries: [{ missed: 0 }, { missed: 700 }] });
  await client.query("alter table palisade.refusals rename to away");
  flood(3);
  await expect.poll(async () => (await store.refusals?.read({ prefix: name, limit: 1 }))?.kind).toBe("unavailable");
  await store.refusals?.store();
  await client.query("alter table palisade.away rename to refusals");
  flood(1);
  await expect.poll(kept).toEqual({ kept: MAX_PENDING + 2, missed: 703 });
  flood(2);
  await store.close();
  expect(await kept()).toEqual({ kept: MAX_PENDING + 4, missed: 703 });
});
