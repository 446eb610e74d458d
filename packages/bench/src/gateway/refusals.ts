// What a refused write costs: its answer over HTTP, and its bytes in the log of Postgres.
import pg from "pg";
import { fixed, heading, table, whole } from "../report.js";
import type { ComparedServers } from "./compared-servers.js";
import { load, type Request } from "./load.js";

const CONNECTIONS = 64;
const SECONDS = 4;

function put(connection: number, token: number): Request[] {
  return [
    {
      method: "PUT",
      path: `/v1/resources/refused/${connection}`,
      headers: { "content-type": "application/json", "fencing-token": String(token) },
      body: '{"late":true}',
    },
  ];
}

async function walBytes(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ bytes: string }>("select pg_current_wal_insert_lsn() - '0/0' as bytes");
  return Number(rows[0]?.bytes);
}

export async function measureRefusals({ gateway, gatewayDatabase }: ComparedServers): Promise<void> {
  heading(
    "Stale writes refused",
    `token 6 where 7 is stored, ${CONNECTIONS} connections, ${SECONDS} s; the log of the whole server, idle otherwise`,
  );
  const target = { url: gateway.url, connections: CONNECTIONS };
  await load({ ...target, seconds: 1, requestsOf: (connection) => put(connection, 7), expect: "2xx" });
  const client = new pg.Client({ connectionString: gatewayDatabase });
  await client.connect();
  try {
    // Done now, so that what Postgres writes to the log by itself is not counted.
    await client.query("vacuum");
    await client.query("checkpoint");
    const before = await walBytes(client);
    const { perSecond, p99Ms } = await load({
      ...target,
      seconds: SECONDS,
      requestsOf: (connection) => put(connection, 6),
      expect: 412,
    });
    const bytes = (await walBytes(client)) - before;
    const count = perSecond * SECONDS;
    console.log(
      table(
        [{ title: "refused" }, { title: "per s" }, { title: "p99 ms" }, { title: "bytes of WAL" }, { title: "per refusal" }],
        [[whole(count), whole(perSecond), fixed(p99Ms, 1), whole(bytes), fixed(bytes / count, 3)]],
      ),
    );
  } finally {
    await client.end();
  }
}
