// What two hundred probes at once take from those who read: GETs alone, and beside connections that
// ask the admin port for readiness and metrics as fast as it answers.
import { fixed, heading, median, table, whole } from "../report.js";
import type { ComparedServers } from "./compared-servers.js";
import { load, type Measured } from "./load.js";

const READERS = 64;
const PROBES = 200;
const ROUNDS = 5;
const SECONDS = 4;

export async function measureProbes({ gateway }: ComparedServers): Promise<void> {
  heading(`GET over ${READERS} connections, alone and beside ${PROBES} probes`, `${ROUNDS} rounds of ${SECONDS} s in turns`);
  const document = { path: "/v1/resources/probes/1", headers: { "content-type": "application/json", "fencing-token": "7" }, body: "{}" };
  await fetch(`${gateway.url}${document.path}`, { method: "PUT", headers: document.headers, body: document.body });
  const get = {
    url: gateway.url,
    connections: READERS,
    expect: 200,
    requestsOf: () => [{ ...document, method: "GET" as const, body: "" }],
  };
  const probe = (path: string) => ({ method: "GET" as const, path, headers: {}, body: "" });
  const probes = { url: gateway.adminUrl ?? "", connections: PROBES, expect: 200, requestsOf: () => [probe("/ready"), probe("/metrics")] };
  const alone: Measured[] = [];
  const beside: Measured[] = [];
  await load({ ...get, seconds: 2 });
  for (let round = 0; round < ROUNDS; round += 1) {
    alone.push(await load({ ...get, seconds: SECONDS }));
    const [measured] = await Promise.all([load({ ...get, seconds: SECONDS }), load({ ...probes, seconds: SECONDS })]);
    beside.push(measured);
  }
  const row = (name: string, list: readonly Measured[]): string[] => [
    name,
    whole(median(list.map(({ perSecond }) => perSecond))),
    fixed(median(list.map(({ p50Ms }) => p50Ms)), 1),
    fixed(median(list.map(({ p99Ms }) => p99Ms)), 1),
  ];
  const columns = [{ title: "", align: "left" as const }, { title: "per s" }, { title: "p50 ms" }, { title: "p99 ms" }];
  console.log(table(columns, [row("alone", alone), row("beside the probes", beside)]));
}
