// Starts a server with a client, paused or durable if asked to be, prints where its processes and its data are, and stays until it is killed.
import { PostgresServer } from "@palisade/testkit";
import pg from "pg";

const server = await PostgresServer.start({ provider: "local", durable: process.argv[2] === "durable" });
const client = new pg.Client(server.url);
await client.connect();
const { rows } = await client.query<{ pids: number[]; data: string }>(
  `select array(select pid from pg_stat_activity union select split_part(pg_read_file('postmaster.pid'), E'\\n', 1)::int) as pids,
     current_setting('data_directory') as data`,
);
if (process.argv[2] === "paused") await server.pause();
process.stdout.write(`${JSON.stringify(rows[0])}\n`);
setInterval(() => {}, 60_000);
