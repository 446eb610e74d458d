// Draws the pictures of the operator's page that stand in the documents: a real fleet, a real
// gateway and real refusals in a real browser. `npm run pictures`; the folder may be given.
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createGatewayClient } from "@palisade/client";
import { createGateway, makeApiKey } from "@palisade/gateway";
import { createLocker } from "@palisade/lock";
import { chromiumLaunch, PostgresServer, RedisFleet } from "@palisade/testkit";
import { chromium } from "playwright-core";

const folder = process.argv[2] ?? fileURLToPath(new URL("../../../docs", import.meta.url));
const names = ["orders/42", "orders/43", "invoices/2026-11", "jobs/nightly-report", "accounts/7", "stock/brass-hinges", "exports/eu-west"];
const workers = ["billing-1 (host a)", "billing-2 (host b)", "worker-7 (host b)", "worker-9 (host c)"];
const WRITING_MS = 40_000;

/** @type {(() => Promise<unknown>)[]} */
const ends = [];
try {
  await draw();
} finally {
  for (const end of ends.reverse()) await end();
}

async function draw() {
  const stack = await startStack();
  const launch = await chromiumLaunch();
  const browser = await chromium.launch({ ...launch, args: [...launch.args] });
  ends.push(() => browser.close());
  const stopped = new AbortController();
  const traffic = keepWriting(stack, stopped.signal);
  const late = await stack.lockers[2]?.acquire("orders/42", { ttlMs: 1_000 });
  await sleep(WRITING_MS / 2);
  await stack.lockers[1]
    ?.acquire("orders/42", { ttlMs: 60_000 })
    .then((lease) => stack.client.put("orders/42", { status: "paid" }, { lease }));
  for (let i = 0; i < 4; i++) {
    await stack.client.put("orders/42", { status: "cancelled" }, { token: late?.token ?? 1 });
    await sleep(2_000);
  }
  await sleep(WRITING_MS / 2 - 8_000);
  await picture(browser, stack, { name: "page", path: "", width: 1280, height: 1010 });
  await picture(browser, stack, { name: "page-resource", path: "#/resource/orders%2F42", width: 1280, height: 1240 });
  await picture(browser, stack, { name: "page-release", path: "#/resource/orders%2F42", width: 1280, height: 820, asks: true });
  stopped.abort();
  await traffic;
}

async function startStack() {
  const fleet = await RedisFleet.start({ nodes: 5, appendfsync: "no" });
  ends.push(() => fleet.stop());
  const postgres = await PostgresServer.start();
  ends.push(() => postgres.stop());
  const [operator, worker] = [makeApiKey(), makeApiKey()];
  const { url: databaseUrl } = await postgres.createDatabase();
  const apiKeys = [
    { id: "on-call", sha256: operator.sha256, scopes: ["observe:", "admin:"] },
    { id: "shop", sha256: worker.sha256, scopes: ["read:", "write:", "seal:"] },
  ];
  const ports = { host: "127.0.0.1", port: 0, adminPort: 0 };
  const keeping = /** @type {const} */ ({ page: "on", history: "on", logLevel: "silent" });
  const gateway = createGateway({ databaseUrl, redisUrls: fleet.urls, apiKeys, ...ports, ...keeping });
  await gateway.listen();
  ends.push(() => gateway.close());
  const lockers = workers.map((label) => createLocker({ nodes: fleet.urls, label, ttlMs: 20_000, maxTtlMs: 60_000, waitMs: 20_000 }));
  for (const locker of lockers) ends.push(() => locker.close());
  return { fleet, gateway, lockers, key: operator.key, client: createGatewayClient({ url: gateway.url, apiKey: worker.key }) };
}

/**
 * @param {Awaited<ReturnType<typeof startStack>>} stack
 * @param {AbortSignal} signal
 */
async function keepWriting({ lockers, client }, signal) {
  const held = names.slice(1).map((name, at) => lockers[at % lockers.length]?.acquire(name, { renew: true }));
  const leases = await Promise.all(held);
  const bulk = Array.from({ length: 180 }, (_, i) => lockers[i % 4]?.acquire(`stock/${String(i + 1).padStart(4, "0")}`, { renew: true }));
  await Promise.all(bulk);
  for (let turn = 0; !signal.aborted; turn++) {
    const often = 6 + Math.round(5 * Math.sin(turn / 25) + 3 * Math.sin(turn / 7));
    await Promise.all(
      Array.from({ length: often }, async (_, i) => {
        const at = i % leases.length;
        const lease = leases[at];
        if (lease?.held) await client.put(names[at + 1] ?? "", { turn }, { lease }).catch(() => undefined);
      }),
    );
    await sleep(100);
  }
}

/**
 * @param {import("playwright-core").Browser} browser
 * @param {Awaited<ReturnType<typeof startStack>>} stack
 * @param {{ name: string, path: string, width: number, height: number, asks?: boolean }} shot
 */
async function picture(browser, { gateway, key }, { name, path, width, height, asks = false }) {
  const context = await browser.newContext({ viewport: { width, height } });
  const page = await context.newPage();
  await page.goto(`${gateway.adminUrl}/page/${path}`);
  await page.getByLabel("Key").fill(key);
  await page.getByRole("button", { name: "Open" }).click();
  await page.getByRole("heading", { level: 1, name: path === "" ? /vote|refused/ : "orders/42" }).waitFor();
  await page.getByText("Ends in").first().waitFor();
  if (asks) {
    await page.getByRole("button", { name: "Take the lock away" }).click();
    await page.getByRole("textbox").fill("host b does not answer");
  }
  await sleep(1_500); // For the first look at everything.
  await page.screenshot({ path: `${folder}/${name}.png` });
  console.log(`${name}.png`);
  await context.close();
}
