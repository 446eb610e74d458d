// What hours of writes at full speed leave: used keys and history, while both are forgotten after a
// minute, in a run of a few minutes. After the first minute nothing more should be added.
import pg from "pg";
import type { Round } from "../measure/comparison.js";
import type { Context } from "../measure/part.js";
import type { Row } from "../measure/results.js";
import type { Bench } from "./http-contestant.js";
import type { Requests } from "./load-client.js";

const SECONDS = 240;
const EVERY_MS = 20_000;
const CONNECTIONS = 64;
const MB = 1_000_000;

/** Each request with a key of its own. */
const keyedPuts: Requests = {
  method: "PUT",
  path: "/v1/resources/growth/{c}-{i}",
  headers: { "content-type": "application/json", "fencing-token": "7", "idempotency-key": "growth-{n}" },
  body: '{"status":"paid"}',
  each: 50,
  expect: [200, 201],
};

async function sizes(client: pg.Client): Promise<Readonly<Record<string, number>>> {
  const { rows } = await client.query<Record<string, string>>(`select
    (select count(*) from palisade.used_keys) as keys, pg_total_relation_size('palisade.used_keys') as "keysBytes",
    (select count(*) from palisade.history) as entries, pg_total_relation_size('palisade.history') as "entriesBytes"`);
  const { keys = 0, keysBytes = 0, entries = 0, entriesBytes = 0 } = rows[0] ?? {};
  return { keys: Number(keys), keysMb: Number(keysBytes) / MB, entries: Number(entries), entriesMb: Number(entriesBytes) / MB };
}

export async function measureGrowth({ servers, client: load }: Bench, context: Context): Promise<void> {
  const title = "Growth of used keys and history";
  context.progress.begin(title);
  const retention = { PALISADE_IDEMPOTENCY_RETENTION_MS: "60000", PALISADE_HISTORY_RETENTION_MS: "60000" };
  const gateway = await servers.open("palisade", { env: { PALISADE_HISTORY: "on", ...retention } });
  const client = new pg.Client({ connectionString: gateway.databaseUrl });
  await client.connect();
  const rows: Row[] = [];
  const startedAt = performance.now();
  let pending = Promise.resolve();
  const timer = setInterval(() => {
    pending = pending.then(async () => {
      const figures = await sizes(client);
      const second = Math.round((performance.now() - startedAt) / 1_000);
      context.progress.step(`${second} of ${SECONDS} s`);
      rows.push({ name: `after ${second} s`, kind: "ours", does: "puts with a key each", figures, rounds: {} });
    });
  }, EVERY_MS);
  try {
    const { operations, seconds } = await load.ask<Round>({
      urls: gateway.urls,
      connections: CONNECTIONS,
      seconds: SECONDS,
      requests: keyedPuts,
    });
    clearInterval(timer);
    await pending;
    context.publish({
      id: "growth",
      title,
      remark: `${CONNECTIONS} connections, ${SECONDS} s of PUTs with a key each (${Math.round(operations / seconds)} per s), history on, both forgotten after 60 s`,
      columns: [
        { key: "keys", title: "used keys", digits: 0 },
        { key: "keysMb", title: "MB", digits: 1 },
        { key: "entries", title: "entries of history", digits: 0 },
        { key: "entriesMb", title: "MB", digits: 1 },
      ],
      rows,
    });
  } finally {
    clearInterval(timer);
    await client.end();
    await gateway.stop();
  }
}
