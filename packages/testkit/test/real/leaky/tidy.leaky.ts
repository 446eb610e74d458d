// Leaves nothing behind, though it cleans up in afterAll: the guard looks after that.
import { connect, type Socket } from "node:net";
import { type Child, startChild } from "@palisade/testkit";
import { afterAll, test } from "@palisade/testkit/vitest";
import pg from "pg";

let child: Child | undefined;
let socket: Socket | undefined;

afterAll(async () => {
  socket?.destroy();
  await child?.kill();
});

test("uses what the others forget", async ({ redis, database, fleet }) => {
  child = startChild({ command: "sleep", args: ["600"] });
  socket = connect(Number(new URL(redis.urls[0] ?? "").port), "127.0.0.1");
  await fleet({ nodes: 1 });
  const client = new pg.Client(database.url);
  await client.connect();
  await client.end();
});
