// What is true of a Postgres server as processes of this machine: a crash ends them all, and only
// this machine can reach it.
import { connectTo, PostgresServer, queryAt, withClient } from "@palisade/testkit";
import { afterAll, beforeAll, expect, test } from "@palisade/testkit/vitest";
import { isAlive } from "../unit/owner.js";
import { processIds } from "./postgres-process-ids.js";

let server: PostgresServer;

beforeAll(async () => {
  server = await PostgresServer.start({ provider: "local" });
});

afterAll(async () => {
  await server.stop();
});

const query = (text: string): Promise<unknown[]> => queryAt(server.url, text);

const living = (among: readonly number[]): number[] => among.filter(isAlive);

test("a crash ends every process of the server", async () => {
  const before = await withClient(server.url, processIds);
  expect(living(before).length).toBe(before.length);
  await server.crash();
  expect(living(before)).toEqual([]);
  await server.restart();
});

test("a crash of a paused server ends every process of it as well, and what they were asked meanwhile is never done", async () => {
  await query("create table writes (number int)");
  await using client = await connectTo(server.url);
  const before = await withClient(server.url, processIds);
  await server.pause();
  const answer = client.query("insert into writes values (1)").then(
    () => "answered",
    () => "cut",
  );
  await server.crash();
  expect(living(before)).toEqual([]);
  expect(await answer).toBe("cut");
  await server.restart();
  expect(await query("select from writes")).toEqual([]);
});

test("a server listens on loopback and on no socket file", async () => {
  expect(await query("select current_setting('listen_addresses') as tcp, current_setting('unix_socket_directories') as files")).toEqual([
    { tcp: "127.0.0.1", files: "" },
  ]);
});
