// What an operation costs as the table grows: PUTs and GETs of random resources among a thousand to
// ten million.
import { connectTo } from "@palisade/testkit";
import type { Contestant } from "../measure/comparison.js";
import type { Context } from "../measure/part.js";
import { shown } from "../measure/text.js";
import { type Bench, httpContestant, walColumn } from "./http-contestant.js";
import type { Requests } from "./load-client.js";
import type { ServerGroup } from "./servers.js";

const CONNECTIONS = 16;
const headers = { "content-type": "application/json", "fencing-token": "7" };

async function fill({ databaseUrl }: ServerGroup, count: number): Promise<void> {
  await using client = await connectTo(databaseUrl);
  await client.query(
    `insert into palisade.resources (resource, token, seq, rev, born, op, deleted, value, updated_at)
       select 'grown/' || i, 7, 0, 1, 1, 'put', false, '{"n":1,"status":"paid"}', now() from generate_series(0, ${count - 1}) i`,
  );
  await client.query("vacuum (analyze) palisade.resources");
  await client.query("checkpoint");
}

/** The part `name`: tables of so many resources. */
export const measureTables = (name: string, sizes: readonly number[]) => async (bench: Bench, context: Context) => {
  const counts = sizes.map((size) => ({ rows: shown(size, 0), count: context.count(size) }));
  const opened: ServerGroup[] = [];
  const title = "PUT and GET in a growing table";
  context.progress.begin(title);
  try {
    const lists: { readonly put: Contestant[]; readonly get: Contestant[] } = { put: [], get: [] };
    for (const { rows, count } of counts) {
      context.progress.step(`filling ${rows}`);
      const group = await bench.servers.open("palisade");
      opened.push(group);
      await fill(group, count);
      const common = { path: "/v1/resources/grown/{r}", among: count };
      const put: Requests = { ...common, method: "PUT", headers, body: '{"n":2,"status":"paid"}', expect: [200] };
      const get: Requests = { ...common, method: "GET", expect: [200] };
      const named = { ...group, name: `${rows} resources` };
      lists.put.push(httpContestant(bench, named, { connections: CONNECTIONS, requests: put }));
      lists.get.push(httpContestant(bench, named, { connections: CONNECTIONS, requests: get }));
    }
    for (const kind of ["put", "get"] as const) {
      await context.compare({
        id: `${name}/${kind}`,
        title: `${kind.toUpperCase()} of a random resource in a growing table`,
        remark: `${CONNECTIONS} connections, small documents, commits on disk`,
        effort: context.effort({ rounds: 5, seconds: 0.8 }),
        contestants: lists[kind],
        compared: "p50Us",
        columns: kind === "put" ? [walColumn] : [],
      });
    }
  } finally {
    for (const group of opened) await group.stop();
  }
};
