// Starts a server with a client, paused or durable if asked to be, prints where its processes and
// its data are, and stays until it is killed.
import { PostgresServer } from "@palisade/testkit";
import pg from "pg";
import { processIds } from "./postgres-process-ids.js";

const server = await PostgresServer.start({ provider: "local", durable: process.argv[2] === "durable" });
const client = new pg.Client(server.url);
await client.connect();
const { rows } = await client.query<{ own: number; data: string }>(
  "select pg_backend_pid() as own, current_setting('data_directory') as data",
);
const pids = [...(await processIds(client)), ...rows.map((row) => row.own)];
if (process.argv[2] === "paused") await server.pause();
process.stdout.write(`${JSON.stringify({ pids, data: rows[0]?.data })}\n`);
setInterval(() => {}, 60_000);
