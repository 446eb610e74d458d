// The alert rules and the dashboard that are shipped, against a real Prometheus and what a real
// gateway reports.
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createGatewayClient } from "@palisade/client";
import { createLocker } from "@palisade/lock";
import { Prometheus } from "@palisade/testkit";
import { beforeAll, describe, eventually, expect, test, uniqueName } from "../support/fixtures.js";

const pathOf = (name: string) => fileURLToPath(new URL(`../../../../deploy/${name}`, import.meta.url));
const rules = readFileSync(pathOf("prometheus/palisade.rules.yml"), "utf8");
const dashboard = readFileSync(pathOf("grafana/palisade.json"), "utf8");

/** For the download, where no Prometheus is installed: no test's own time may go into it. */
const FETCHED_WITHIN_MS = 600_000;
beforeAll(async () => void (await Prometheus.tool("--version")), FETCHED_WITHIN_MS);

/** Of what counts from there on, the first event is a rise. */
async function scrapedTwice({ url }: Prometheus): Promise<void> {
  const query = encodeURIComponent('count_over_time(palisade_verifications_total{answer="unissued"}[1m]) > 1');
  const scraped = async () => await (await fetch(`${url}/api/v1/query?query=${query}`)).json();
  await eventually(scraped).toMatchObject({ data: { result: [{}] } });
}

const firingIn = (prometheus: Prometheus) => async () =>
  (await prometheus.alerts())
    .filter(({ state }) => state === "firing")
    .map(({ labels }) => labels.alertname?.replace("Palisade", ""))
    .toSorted();

describe("the alert rules", () => {
  test("are what promtool takes, and fire as their own tests say", async () => {
    expect(await Prometheus.tool("check", "rules", pathOf("prometheus/palisade.rules.yml"))).toContain("14 rules found");
    expect(await Prometheus.tool("test", "rules", pathOf("prometheus/palisade.test.yml"))).toContain("SUCCESS");
  });

  test("G4 the first forged token of a gateway's life fires, seen by a Prometheus that scrapes it", async ({ redis, startGateway }) => {
    const gateway = await startGateway({ redisUrls: redis.urls, namespace: redis.namespace });
    const { host } = new URL(gateway.adminUrl);
    await using prometheus = await Prometheus.start({ job: "palisade", targets: [host], rules });
    await scrapedTwice(prometheus);
    const locker = createLocker({ nodes: redis.urls, namespace: redis.namespace });
    const client = createGatewayClient({ url: gateway.url });
    const name = uniqueName();
    await locker.using(name, (lease) => client.put(name, { n: 1 }, { lease }));
    await locker.close();
    expect(await client.put(name, { n: 2 }, { token: 999_999_999_999 * 900 })).toMatchObject({ code: "fencing_token_unissued" });
    await eventually(firingIn(prometheus)).toEqual(["TokenNeverIssued"]);
  });

  test("a silent node, one that waits, a fleet without a spare, a lost lease and a long wait fire there", async ({
    fleet,
    startGateway,
  }) => {
    const { urls, nodes } = await fleet({ nodes: 3 });
    const gateway = await startGateway({ redisUrls: urls });
    const { host } = new URL(gateway.adminUrl);
    // As they are, but for how long something has to last.
    const hasty = rules.replaceAll(/^( +for:) \d+m$/gm, "$1 0s").replace("[5m]))) > 5", "[5m]))) > 0.5");
    await using prometheus = await Prometheus.start({ job: "palisade", targets: [host], rules: hasty });
    const firing = firingIn(prometheus);
    await scrapedTwice(prometheus);
    expect(await firing()).toEqual([]);
    await nodes[0]?.pause();
    await eventually(firing).toEqual(["NoSpare", "NodeSilent"]);
    await nodes[0]?.restart({ forget: true });
    await eventually(firing).toEqual(["NoSpare", "NodeWaits"]);
    await using locker = createLocker({ nodes: urls });
    const lease = await locker.acquire("r");
    const waiting = locker.acquire("r");
    await sleep(1_000);
    await locker.fleet.forceRelease("r", { reason: "test" });
    await expect(lease.extend()).rejects.toMatchObject({ reason: "taken" });
    await waiting;
    await eventually(firing).toEqual(["LeasesLost", "NoSpare", "NodeWaits", "WaitsLong"]);
  });
});

test("every metric that a rule or a panel names is one that the gateway reports", async ({ redis, startGateway }) => {
  const gateway = await startGateway({ redisUrls: redis.urls, namespace: redis.namespace });
  const reported = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
  const named = new Set([...`${rules}${dashboard}`.matchAll(/palisade_[a-z_]+(?=[{[ )>,])/g)].map(([name]) => name));
  expect(named.size).toBeGreaterThan(10);
  const missing = [...named].filter(
    (name) => !new RegExp(`^(# TYPE )?${name}[ {]`, "m").test(reported) && !reported.includes(`\n${name} `),
  );
  expect(
    missing.filter((name) => !/_(bucket|sum|count)$/.test(name) || !reported.includes(name.replace(/_(bucket|sum|count)$/, ""))),
  ).toEqual([]);
});
