// What is true of a Postgres server as processes of this machine: a crash ends them all, and only
// this machine can reach it.
import { PostgresServer } from "@palisade/testkit";
import { afterAll, beforeAll, expect, test } from "@palisade/testkit/vitest";
import pg from "pg";
import { isAlive } from "../unit/owner.js";
import { processIds } from "./postgres-process-ids.js";

let server: PostgresServer;

beforeAll(async () => {
  server = await PostgresServer.start({ provider: "local" });
});

afterAll(async () => {
  await server.stop();
});

async function ask<Answer>(question: (client: pg.Client) => Promise<Answer>): Promise<Answer> {
  const client = new pg.Client(server.url);
  await client.connect();
  try {
    return await question(client);
  } finally {
    await client.end();
  }
}

const query = async (text: string): Promise<unknown[]> => (await ask((client) => client.query(text))).rows;

const living = (among: readonly number[]): number[] => among.filter(isAlive);

test("a crash ends every process of the server", async () => {
  const before = await ask(processIds);
  expect(living(before).length).toBe(before.length);
  await server.crash();
  expect(living(before)).toEqual([]);
  await server.restart();
});

test("a crash of a paused server ends every process of it as well, and what they were asked meanwhile is never done", async () => {
  await query("create table writes (number int)");
  const client = new pg.Client(server.url);
  client.on("error", () => {}); // The crash cuts it; the waiting statement reports it.
  await client.connect();
  const before = await ask(processIds);
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
