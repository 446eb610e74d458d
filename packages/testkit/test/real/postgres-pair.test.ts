// A pair replicates for real: what a synchronous standby has acknowledged survives the loss of its
// primary, and what an asynchronous one has not is gone.
import { setTimeout as sleep } from "node:timers/promises";
import { connectTo, PostgresPair, queryAt } from "@palisade/testkit";
import { describe, expect, test } from "@palisade/testkit/vitest";
import { writeUntilCut } from "./postgres-writes.js";

const CREATE_WRITES = "create table writes (number int primary key)";

async function writesOn(url: string): Promise<number[]> {
  return (await queryAt<{ number: number }>(url, "select number from writes order by number")).map((row) => row.number);
}

describe("synchronous", () => {
  test("every write acknowledged before the primary crashed is there after the promotion", async () => {
    await using pair = await PostgresPair.start({ replication: "sync" });
    await queryAt(pair.primary.url, CREATE_WRITES);
    await using client = await connectTo(pair.primary.url);
    const writing = writeUntilCut(client, 20);
    await writing.enough;
    await pair.primary.crash();
    const acknowledged = await writing.acknowledged;
    await pair.promote();
    expect(await writesOn(pair.standby.url)).toEqual(expect.arrayContaining(acknowledged));
    await queryAt(pair.standby.url, "insert into writes values (0)");
  });

  test("a commit waits while the link is broken and returns when it heals; until promoted the standby refuses writes", async () => {
    await using pair = await PostgresPair.start({ replication: "sync" });
    await queryAt(pair.primary.url, CREATE_WRITES);
    await pair.caughtUp();
    await expect(queryAt(pair.standby.url, "insert into writes values (0)")).rejects.toMatchObject({ code: "25006" });
    await pair.replication.partition();
    const write = queryAt(pair.primary.url, "insert into writes values (1)").then(() => "acknowledged");
    await expect(Promise.race([write, sleep(100, "waiting")])).resolves.toBe("waiting");
    expect(await writesOn(pair.standby.url)).toEqual([]);
    await pair.replication.heal();
    expect(await write).toBe("acknowledged");
    expect(await queryAt(pair.primary.url, "select sync_state from pg_stat_replication")).toEqual([{ sync_state: "sync" }]);
    await pair.caughtUp();
    expect(await writesOn(pair.standby.url)).toEqual([1]);
  });
});

describe("asynchronous", () => {
  test("control: a write acknowledged while the link was broken is lost by the promotion", async () => {
    await using pair = await PostgresPair.start({ replication: "async" });
    await queryAt(pair.primary.url, CREATE_WRITES);
    await queryAt(pair.primary.url, "insert into writes values (33)");
    await pair.caughtUp();
    await pair.replication.partition();
    await queryAt(pair.primary.url, "insert into writes values (34)");
    await pair.primary.crash();
    await pair.promote();
    expect(await writesOn(pair.standby.url)).toEqual([33]);
  });

  test("a slow link delays the standby", async () => {
    await using pair = await PostgresPair.start({ replication: "async" });
    await queryAt(pair.primary.url, CREATE_WRITES);
    await pair.caughtUp();
    pair.replication.slow(150);
    const startedAt = performance.now();
    await queryAt(pair.primary.url, "insert into writes values (1)");
    await pair.caughtUp();
    expect(performance.now() - startedAt).toBeGreaterThan(150);
    expect(await writesOn(pair.standby.url)).toEqual([1]);
  });
});
