// What a refused write costs: over HTTP it is answered, and in Postgres it leaves nothing in the log.
import pg from "pg";
import { fixed, heading, table, whole } from "../report.js";
import type { Arena } from "./contestants.js";
import { load, type Request } from "./load.js";

const connections = 64;
const seconds = 4;

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

export async function measureRefusals({ gateway, gatewayDatabase }: Arena): Promise<void> {
  heading(
    "Stale writes refused",
    `token 6 where 7 is stored, ${connections} connections, ${seconds} s; the log of the whole server, idle otherwise`,
  );
  await load({ url: gateway.url, connections, seconds: 1, requestsOf: (i) => put(i, 7), expect: "2xx" });
  const client = new pg.Client({ connectionString: gatewayDatabase });
  await client.connect();
  try {
    // Whatever else writes to the log by itself would be counted.
    await client.query("vacuum");
    await client.query("checkpoint");
    const before = await walBytes(client);
    const { perSecond, p99Ms } = await load({ url: gateway.url, connections, seconds, requestsOf: (i) => put(i, 6), expect: 412 });
    const bytes = (await walBytes(client)) - before;
    const count = perSecond * seconds;
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
