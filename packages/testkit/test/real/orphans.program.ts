// Owns children, a fleet, or a Postgres server, prints their processes and folders, and ends as told.
import { connectTo, PostgresServer, RedisFleet, startChild } from "@palisade/testkit";

const [owned, ending] = process.argv.slice(2);
const pids: (number | undefined)[] = [];
const folders: unknown[] = [];

if (owned === "children") {
  const nobody = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
  pids.push(...[{}, nobody].map((account) => startChild({ command: "sleep", args: ["600"], ...account }).pid));
} else if (owned === "fleet") {
  const fleet = await RedisFleet.start({ nodes: 3, provider: "local" });
  for (const node of fleet.nodes) {
    pids.push(node.pid);
    folders.push(((await node.cli("CONFIG", "GET", "dir")) as string[])[1]);
  }
  await fleet.nodes[0]?.pause();
} else {
  const server = await PostgresServer.start({ provider: "local", durable: owned === "durable postgres" });
  const client = await connectTo(server.url);
  const sessions = "select pid, current_setting('data_directory') as data from pg_stat_activity";
  // A server answers before all of its own processes are listed: its client and four of them at the least.
  for (;;) {
    const { rows } = await client.query<{ pid: number; data: string }>(sessions);
    if (rows.length < 5) continue;
    pids.push(...rows.map(({ pid }) => pid));
    folders.push(rows[0]?.data);
    break;
  }
  if (owned === "paused postgres") await server.pause();
}

process.stdout.write(`${JSON.stringify({ pids, folders })}\n`);
if (ending === "exit") process.exit(0);
if (ending !== "end") setInterval(() => {}, 60_000);
