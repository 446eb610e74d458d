// PUTs per second and their latency: the gateway, which checks a token and answers with a revision,
// against the handler that checks nothing.
import { ratio } from "../measure/statistics.js";
import { fixed, heading, median, progress, progressEnded, table, whole } from "../report.js";
import type { ComparedServers } from "./compared-servers.js";
import { load, type Measured, type Request } from "./load.js";

const ROUNDS = 5;
const SECONDS = 4;
const RESOURCES_EACH = 50;
const document = JSON.stringify({
  status: "paid",
  total: 4_200,
  currency: "EUR",
  lines: Array.from({ length: 5 }, (_, i) => ({ sku: `A-${i}`, count: i })),
});

function puts(connection: number, token: number): Request[] {
  return Array.from({ length: RESOURCES_EACH }, (_, i) => ({
    method: "PUT",
    path: `/v1/resources/orders/${connection}-${i}`,
    headers: { "content-type": "application/json", "fencing-token": String(token) },
    body: document,
  }));
}

export async function comparePuts({ gateway, plain }: ComparedServers, connections: number): Promise<void> {
  heading(
    `PUT over ${connections} connections`,
    `${Buffer.byteLength(document)} bytes each, ${connections * RESOURCES_EACH} resources, commits on disk, ` +
      `${ROUNDS} rounds of ${SECONDS} s in turns; × plain: median over the rounds`,
  );
  const servers = [plain, gateway];
  const results = new Map<string, Measured[]>(servers.map(({ name }) => [name, []]));
  const plan = { connections, requestsOf: (connection: number) => puts(connection, 7), expect: "2xx" } as const;
  for (const { url } of servers) await load({ ...plan, url, seconds: 2 });
  for (let round = 0; round < ROUNDS; round += 1) {
    progress(`round ${round + 1} of ${ROUNDS}`);
    for (const { name, url } of round % 2 === 0 ? servers : [...servers].reverse()) {
      results.get(name)?.push(await load({ ...plan, url, seconds: SECONDS }));
    }
  }
  progressEnded();
  const rates = (name: string): number[] => (results.get(name) ?? []).map(({ perSecond }) => perSecond);
  const rows = servers.map(({ name }) => {
    const measured = results.get(name) ?? [];
    return [
      name,
      whole(median(rates(name))),
      fixed(median(measured.map(({ p50Ms }) => p50Ms)), 1),
      fixed(median(measured.map(({ p99Ms }) => p99Ms)), 1),
      fixed(ratio(rates(name), rates(plain.name)), 2),
    ];
  });
  console.log(
    table([{ title: "", align: "left" }, { title: "per s" }, { title: "p50 ms" }, { title: "p99 ms" }, { title: "× plain" }], rows),
  );
}
