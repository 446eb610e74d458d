// What hours of writes at full speed leave: used keys and history, while both are forgotten after a
// minute, in a run of a few minutes. After the first minute nothing more should be added.
import { takePort } from "@palisade/testkit";
import pg from "pg";
import { fixed, heading, table, whole } from "../report.js";
import type { ComparedServers } from "./compared-servers.js";
import { load, type Request } from "./load.js";
import { startServer } from "./server-process.js";

const SECONDS = 240;
const EVERY_MS = 20_000;
const CONNECTIONS = 64;
const MB = 1_000_000;

let keys = 0;
/** Each request with a key of its own. */
function keyedPuts(connection: number): Request[] {
  return Array.from({ length: 50 }, (_, i) => ({
    method: "PUT",
    path: `/v1/resources/growth/${connection}-${i}`,
    headers: { "content-type": "application/json", "fencing-token": "7" },
    body: '{"status":"paid"}',
    setupRequest: (request: Request): Request => {
      keys += 1;
      return { ...request, headers: { ...request.headers, "idempotency-key": `growth-${keys}` } };
    },
  }));
}

async function sizes(client: pg.Client): Promise<readonly number[]> {
  const { rows } = await client.query<Record<string, string>>(`select
    (select count(*) from palisade.used_keys) as keys, pg_total_relation_size('palisade.used_keys') as "keysBytes",
    (select count(*) from palisade.history) as entries, pg_total_relation_size('palisade.history') as "entriesBytes"`);
  return Object.values(rows[0] ?? {}).map(Number);
}

export async function measureGrowth({ postgres }: ComparedServers): Promise<void> {
  heading("Growth", `${CONNECTIONS} connections, ${SECONDS} s of PUTs with a key each, history on, both forgotten after 60 s`);
  const database = await postgres.createDatabase();
  const retention = { PALISADE_IDEMPOTENCY_RETENTION_MS: "60000", PALISADE_HISTORY_RETENTION_MS: "60000" };
  const gateway = await startServer({
    name: "palisade-gateway",
    file: new URL("../../../gateway/dist/main.js", import.meta.url),
    env: { DATABASE_URL: database.url, PALISADE_LOG_LEVEL: "warn", PALISADE_HISTORY: "on", ...retention },
    port: await takePort(),
    adminPort: await takePort(),
  });
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  const rows: string[][] = [];
  const startedAt = performance.now();
  let pending = Promise.resolve();
  const timer = setInterval(() => {
    pending = pending.then(async () => {
      const [used = 0, usedBytes = 0, entries = 0, entriesBytes = 0] = await sizes(client);
      const second = (performance.now() - startedAt) / 1_000;
      rows.push([whole(second), whole(used), fixed(usedBytes / MB, 1), whole(entries), fixed(entriesBytes / MB, 1)]);
    });
  }, EVERY_MS);
  const { perSecond } = await load({ url: gateway.url, connections: CONNECTIONS, seconds: SECONDS, requestsOf: keyedPuts, expect: "2xx" });
  clearInterval(timer);
  await pending;
  console.log(`${whole(perSecond)} keyed writes per second`);
  const columns = ["second", "used keys", "MB", "entries of history", "MB"].map((title) => ({ title }));
  console.log(table(columns, rows));
  await client.end();
  await gateway.stop();
}
