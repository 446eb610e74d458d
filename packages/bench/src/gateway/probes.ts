// What two hundred probes at once take from those who read: GETs alone, and beside connections that
// ask the admin port for readiness and metrics as fast as it answers.
import type { Contestant } from "../measure/comparison.js";
import type { Context } from "../measure/part.js";
import { type Bench, httpContestant, prepare, startLoadClient } from "./http-contestant.js";
import type { Requests } from "./load-client.js";

const READERS = 64;
const PROBES = 200;
const path = "/v1/resources/probes/1";

export async function measureProbes(bench: Bench, context: Context): Promise<void> {
  const title = `GET over ${READERS} connections, alone and beside ${PROBES} probes`;
  context.progress.begin(title);
  const group = await bench.servers.group("palisade");
  const headers = { "content-type": "application/json", "fencing-token": "7" };
  await prepare(bench, group, { connections: 1, requests: { method: "PUT", path, headers, body: "{}", expect: [200, 201] } });
  const get: Requests = { method: "GET", path, expect: [200] };
  const alone = httpContestant(bench, group, { connections: READERS, requests: get, suffix: ", alone" });
  const prober = startLoadClient();
  const probes = ["/ready", "/metrics"].map((path): Requests => ({ method: "GET", path, expect: [200] }));
  const beside: Contestant = {
    ...alone,
    name: `${group.name}, beside the probes`,
    async round(seconds) {
      const asked = probes.map((requests) => prober.ask({ urls: [group.adminUrl], connections: PROBES / 2, seconds, requests }));
      const [round] = await Promise.all([alone.round(seconds), ...asked]);
      return round;
    },
  };
  try {
    await context.compare({
      id: "probes",
      title,
      remark: "probes of /ready and /metrics on the admin port, from a process of their own",
      effort: context.effort({ rounds: 5, seconds: 1 }),
      contestants: [alone, beside],
      compared: "perSecond",
    });
  } finally {
    await prober.stop();
  }
}
