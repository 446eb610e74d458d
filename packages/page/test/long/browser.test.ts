// The operator's page in a real browser, over a real fleet, a real gateway and real refusals. Among
// the long tests, because a machine without a browser fetches one of 97 MB first; what needs none
// is tested in test/real/page.test.ts.
import { fileURLToPath } from "node:url";
import { createGatewayClient } from "@palisade/client";
import type { Gateway, GatewayConfig } from "@palisade/gateway";
import { createLocker, type Locker, type LockerOptions } from "@palisade/lock";
import { startChild } from "@palisade/testkit";
import type { Browser } from "playwright-core";
import { afterAll, test as base, beforeAll, describe, eventually, expect } from "../../../gateway/test/support/fixtures.js";
import { barriers, busyTime, hidden, overflow, startBrowser, type Visit, type Visited, visit } from "../support/browser.js";
import { type Keys, looksUntil, pageSettings } from "../support/gateway.js";

const patient = { ttlMs: 50_000, waitMs: 50_000, nodeTimeoutMs: 5_000 } as const;

interface Opened {
  readonly gateway: Gateway;
  readonly keys: Keys;
  readonly client: ReturnType<typeof createGatewayClient>;
  readonly open: (visit?: Partial<Visit>) => Promise<Visited>;
  readonly lockerOf: (options: Partial<LockerOptions>) => Locker;
}

/** For the download: no test's own time may go into it. */
const FETCHED_WITHIN_MS = 600_000;
let browser: Browser;
beforeAll(async () => {
  browser = await startBrowser();
}, FETCHED_WITHIN_MS);
afterAll(() => browser.close());

const test = base
  .extend("openedAt", ({ startGateway }, { onCleanup }) => {
    const lockers: Locker[] = [];
    onCleanup(async () => {
      await Promise.all(browser.contexts().map((context) => context.close()));
      await Promise.all(lockers.map((locker) => locker.close()));
    });
    return async (nodes: readonly string[], namespace: string, more: Partial<GatewayConfig> = {}): Promise<Opened> => {
      const { keys, settings } = pageSettings();
      const gateway = await startGateway({ redisUrls: nodes, namespace, ...settings, ...more });
      const client = createGatewayClient({ url: gateway.url, apiKey: keys.worker });
      const open = (given: Partial<Visit> = {}) => visit(browser, { adminUrl: gateway.adminUrl, key: keys.operator, ...given });
      const lockerOf = (options: Partial<LockerOptions>) => {
        const locker = createLocker({ nodes: [...nodes], namespace, ...patient, ...options });
        lockers.push(locker);
        return locker;
      };
      return { gateway, keys, client, open, lockerOf };
    };
  })
  .extend("opened", ({ openedAt, redis }) => openedAt(redis.urls, redis.namespace));

describe("an operator", () => {
  test("D1 sees within a second that a holder which was stopped past its lease was refused", async ({ opened, redis, onTestFinished }) => {
    const { client, gateway, keys, open, lockerOf } = await opened;
    const { page } = await open();
    const RESOURCE = "orders/paused";
    const env = { NODES: redis.urls.join(","), NAMESPACE: redis.namespace, GATEWAY: gateway.url, KEY: keys.worker, RESOURCE };
    const lines: string[] = [];
    const holder = startChild({
      command: process.execPath,
      args: [fileURLToPath(new URL("../support/paused-holder.mjs", import.meta.url))],
      env,
      onLine: (line) => lines.push(line),
    });
    onTestFinished(async () => void (await holder.kill()));
    await eventually(() => lines[0]).toMatch(/^holds \d+$/);
    holder.signal("SIGSTOP");
    const next = await lockerOf({ label: "worker-9" }).acquire(RESOURCE);
    await client.put(RESOURCE, { by: "the next one" }, { lease: next });
    await expect.poll(() => page.getByRole("table", { name: "Leases" }).textContent()).toContain("worker-9");
    holder.signal("SIGCONT");
    await eventually(() => lines[1]).toBe("fencing_token_stale");
    const row = page.getByRole("table", { name: "Refused writes" }).getByRole("row", { name: RESOURCE });
    expect(await looksUntil(() => row.isVisible())).toBeLessThan(100);
    expect(await row.textContent()).toMatch(new RegExp(`old token.*worker.*${lines[0]?.slice(6)}.*fence ${next.token}`));
    await page.getByRole("heading", { name: "1 late write was refused in the last minute." }).waitFor();
    await holder.waitForExit();
  });

  test("sees within two seconds that a node was killed, and how long one that forgot everything still waits", async ({
    openedAt,
    fleet,
  }) => {
    const { nodes, urls } = await fleet({ nodes: 5 });
    const { open, lockerOf } = await openedAt(urls, "palisade");
    await lockerOf({ label: "worker-7" }).acquire("orders/kept");
    const { page } = await open();
    await page.getByRole("heading", { name: "All 5 nodes vote. All is well." }).waitFor();
    await page.getByRole("row", { name: /orders\/kept.*worker-7/ }).waitFor();
    await nodes[3]?.kill();
    const heading = page.getByRole("heading", { name: "4 of 5 nodes vote. The lock works." });
    expect(await looksUntil(() => heading.isVisible())).toBeLessThan(200);
    await page.getByRole("listitem").filter({ hasText: "n4" }).filter({ hasText: "silent for" }).waitFor();
    await nodes[4]?.restart({ forget: true });
    await page
      .getByRole("listitem")
      .filter({ hasText: "n5" })
      .filter({ hasText: /waits for \d+ s.*may vote in \d+ s/ })
      .waitFor();
    await page.getByText("None more may fail.").waitFor();
    await nodes[2]?.kill();
    await page.getByRole("heading", { name: "2 of 5 nodes vote: no lease can be granted." }).waitFor();
    await page.getByRole("row", { name: /orders\/kept worker-7 old, seen \d+ s ago/ }).waitFor();
    await page.getByText("1 lease was held when last seen.").waitFor();
    await page.getByRole("link", { name: "orders/kept" }).click();
    await page.getByRole("heading", { name: "Last known holder (old)" }).waitFor();
    await page.getByText("worker-7", { exact: true }).first().waitFor();
    await page.getByText(/Too few nodes answer to tell who holds it now\. It was seen last \d+ s ago/).waitFor();
  });

  test("sees first what most wait for, and how many wait for how many", async ({ opened }) => {
    const { open, lockerOf } = await opened;
    const holder = lockerOf({ label: "worker-7" });
    const leases = [await holder.acquire("a/quiet"), await holder.acquire("b/busy"), await holder.acquire("c/busiest")];
    const waiting = ["b/busy", "c/busiest", "c/busiest"].map((name) => lockerOf({}).acquire(name));
    const { page } = await open();
    await page.getByText("3 leases are held, 3 wait for 2 of them.").waitFor();
    const names = () => page.getByRole("table", { name: "Leases" }).getByRole("link").allTextContents();
    await eventually(names).toEqual(["c/busiest", "b/busy", "a/quiet"]);
    await page.getByRole("row", { name: /c\/busiest 2 wait · worker-7/ }).waitFor();
    await Promise.all([...leases.map((lease) => lease.release()), ...waiting.map(async (next) => (await next).release())]);
  });

  test("says first that Postgres stands still and writes fail, though all nodes vote", async ({ openedAt, redis, proxy, database }) => {
    const databaseUrl = proxy.urlOf(database.url);
    const { client, open, lockerOf } = await openedAt(redis.urls, redis.namespace, { databaseUrl, writeTimeoutMs: 3_000 });
    const { page } = await open();
    await page.getByRole("heading", { name: "All 5 nodes vote. All is well." }).waitFor();
    const lease = await lockerOf({}).acquire("orders/frozen");
    await proxy.partition();
    const written = client.put("orders/frozen", {}, { lease, timeoutMs: 60_000 });
    await page.getByRole("heading", { name: /^Postgres does not answer: nothing is stored, seen for \d+ s\.$/ }).waitFor();
    await page.getByText(/Look at Postgres, and at the way to it\. [1-9]\d* writes? failed in the last ten seconds\./).waitFor();
    await proxy.heal();
    await page.getByRole("heading", { name: /^[1-9]\d* writes? failed in the last ten seconds\.$/ }).waitFor();
    await page.getByRole("heading", { name: "All 5 nodes vote. All is well." }).waitFor();
    await written;
  });

  test("G1 takes a lock away by keyboard: the question names the holder, and the old holder is fenced", async ({ opened }) => {
    const { client, open, lockerOf } = await opened;
    const lease = await lockerOf({ label: "worker-7 (host b)" }).acquire("orders/42");
    await client.put("orders/42", { n: 1 }, { lease });
    const { page, trouble } = await open();
    await page.getByRole("link", { name: "orders/42" }).press("Enter");
    const button = page.getByRole("button", { name: "Take the lock away" });
    await button.press("Enter");
    const dialog = page.getByRole("dialog", { name: "Take orders/42 away from worker-7 (host b)?" });
    await dialog.waitFor();
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "hidden" });
    await button.press("Enter");
    const confirm = dialog.getByRole("button", { name: "Take it from worker-7 (host b)" });
    expect(await confirm.isDisabled()).toBe(true);
    await dialog.getByRole("textbox").fill("host b is gone");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await dialog.getByText(/Taken from worker-7 \(host b\)\. Writes with a token below \d+ are refused from now on\./).waitFor();
    expect(await client.put("orders/42", { n: 2 }, { token: lease.token })).toMatchObject({ ok: false, code: "fencing_token_stale" });
    await expect(lease.extend()).rejects.toMatchObject({ code: "LEASE_LOST" });
    await dialog.getByRole("button", { name: "Close" }).press("Enter");
    await page.getByText("free", { exact: true }).first().waitFor();
    await page.getByRole("row", { name: /old token/ }).waitFor();
    await page.getByRole("img", { name: /1 accepted write, 1 refused write in all/ }).waitFor();
    await page.getByText(/Moved by hand from \d+ to \d+ by operator at \S+ “host b is gone”\./).waitFor();
    await client.put("orders/42", { n: 3 }, { token: lease.token });
    await page.getByRole("row", { name: /old token.*2 times since/ }).waitFor();
    await page.getByRole("img", { name: /1 accepted write, 2 refused writes in all/ }).waitFor();
    expect(await page.locator(".timeline .span title").textContent()).toBe("1 accepted write");
    const titles = await page.getByRole("heading", { level: 2 }).allTextContents();
    expect(titles.indexOf("Refused writes")).toBeLessThan(titles.indexOf("Accepted writes"));
    expect(trouble).toEqual([]);
  });

  test("with a wrong key or one without the scope sees nothing of the lock", async ({ opened }) => {
    const { keys, client, open, lockerOf } = await opened;
    const lease = await lockerOf({ label: "worker-7" }).acquire("orders/secret");
    await client.put("orders/secret", { secret: "document" }, { lease });
    for (const key of [`${keys.operator.slice(0, -1)}x`, keys.worker]) {
      const { page, asked } = await open({ key, view: "#/resource/orders%2Fsecret" });
      await page.getByRole("alert").waitFor();
      expect(await page.content()).not.toMatch(new RegExp(`worker-7|${lease.token}|${key}|document`));
      expect(asked.filter((url) => /leases|resource\?|force/.test(url))).toEqual([]);
    }
    const { page } = await open({ view: "#/resource/orders%2Fsecret" });
    await page.getByText("worker-7", { exact: true }).first().waitFor();
    expect(await page.content()).not.toContain('document"');
  });

  test("is shown names that look like HTML or steer a terminal as text, and nothing is loaded from elsewhere", async ({ opened }) => {
    const { gateway, open, lockerOf } = await opened;
    const name = '<img src=x onerror=alert(1)>"\u001b[2J\u202e42';
    await lockerOf({ label: "<script>alert(2)</script>\u0007" }).acquire(name);
    const { page, asked, trouble } = await open();
    const link = page.getByRole("link", { name: '<img src=x onerror=alert(1)>"\\u{1b}[2J\\u{202e}42' });
    await link.click();
    await page.getByRole("heading", { level: 1, name: "<img src=x onerror=alert(1)>" }).waitFor();
    await page.getByText("<script>alert(2)</script>\\u{7}").first().waitFor();
    await page.getByRole("button", { name: "Take the lock away" }).click();
    await page.getByRole("dialog", { name: /<img src=x/ }).waitFor();
    expect(await page.locator("main img, main script").count()).toBe(0);
    expect(asked.filter((url) => !url.startsWith(`${gateway.adminUrl}/page/`))).toEqual([]);
    expect(trouble).toEqual([]);
  });

  test("is told when the gateway is gone, and goes on when it is back", async ({ opened, startGateway, database, redis }) => {
    const { gateway, keys, open } = await opened;
    const { page } = await open();
    await page.getByText("Live", { exact: true }).waitFor();
    const adminPort = Number(new URL(gateway.adminUrl).port);
    await gateway.close();
    await page.getByText("Connection lost").waitFor();
    const { settings } = pageSettings();
    const { hashApiKey } = await import("@palisade/gateway");
    const apiKeys = [{ id: "operator", sha256: hashApiKey(keys.operator), scopes: ["observe:"] }];
    expect(database.url).toContain("postgres");
    await startGateway({ ...settings, apiKeys, adminPort, redisUrls: redis.urls, namespace: redis.namespace });
    await page.getByText("Live", { exact: true }).waitFor();
  });
});

describe("everybody can use it", () => {
  const themes = ["light", "dark"] as const;
  test.for(themes)(
    "a screen reader and weak eyes meet no barrier in the %s theme, in either view or the question",
    async (colorScheme, { opened }) => {
      const { client, open, lockerOf } = await opened;
      const lease = await lockerOf({ label: "worker-7" }).acquire("orders/42");
      await client.put("orders/42", {}, { lease });
      await client.put("orders/42", {}, { token: lease.token - 1 });
      const { page } = await open({ options: { colorScheme, reducedMotion: "reduce" } });
      await page.getByRole("row", { name: /old token/ }).waitFor();
      await page.getByRole("link", { name: "orders/42" }).first().waitFor();
      expect(await barriers(page)).toEqual([]);
      await page.getByRole("link", { name: "orders/42" }).first().click();
      await page.getByRole("button", { name: "Take the lock away" }).waitFor();
      expect(await barriers(page)).toEqual([]);
      await page.getByRole("button", { name: "Take the lock away" }).click();
      await page.getByRole("dialog").waitFor();
      expect(await barriers(page)).toEqual([]);
    },
  );

  test.for([390, 320])("at a width of %i pixels nothing is wider than the screen, however long a name is", async (width, { opened }) => {
    const { client, open, lockerOf } = await opened;
    const name = `orders/${"a-long-name/".repeat(20)}42`;
    const lease = await lockerOf({ label: `worker-${"7".repeat(200)}` }).acquire(name);
    await client.put(name, {}, { lease });
    await client.put(name, {}, { token: lease.token - 1 });
    const short = "orders/4711";
    await client.put(short, {}, { lease: await lockerOf({ label: "worker-7" }).acquire(short) });
    await client.put(short, {}, { token: lease.token - 1 });
    const { page } = await open({ options: { viewport: { width, height: 700 } } });
    await page
      .getByRole("row", { name: /old token/ })
      .first()
      .waitFor();
    const links = page.getByRole("link", { name: short });
    await eventually(() => links.count()).toBe(2);
    for (const link of await links.all()) expect(await hidden(link)).toBe(0);
    const lead = page.getByRole("table", { name: "Refused writes" }).locator(".digits .lead").first();
    expect([await lead.isVisible(), await lead.textContent()]).toEqual([false, expect.stringMatching(/^\d{9}$/)]);
    await page
      .getByRole("link", { name: /a-long-name/ })
      .first()
      .waitFor();
    expect(await overflow(page)).toBe(0);
    await page
      .getByRole("link", { name: /a-long-name/ })
      .first()
      .click();
    const button = page.getByRole("button", { name: "Take the lock away" });
    await button.waitFor();
    expect(await overflow(page)).toBe(0);
    await button.click();
    await page.getByRole("dialog").waitFor();
    expect(await overflow(page)).toBe(0);
  });
});

describe("much at once", () => {
  test("ten thousand leases and five hundred refusals a second leave the page quick, and few rows are drawn", async ({ opened }) => {
    const { client, open, lockerOf } = await opened;
    const locker = lockerOf({ label: "worker-7", ttlMs: 60_000 });
    for (let start = 0; start < 10_000; start += 1_000)
      await Promise.all(Array.from({ length: 1_000 }, (_, i) => locker.acquire(`bulk/${String(start + i).padStart(5, "0")}`)));
    await client.put("bulk/00000", {}, { token: 5_000 });
    const { page } = await open();
    await page.getByRole("heading", { name: "Leases 10\u202f000" }).waitFor();
    const busy = await busyTime(page);
    let isFlooding = true;
    const flood = (async () => {
      while (isFlooding) {
        await Promise.all(Array.from({ length: 50 }, () => client.put("bulk/00000", {}, { token: 4_000 })));
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    })();
    await page
      .getByRole("row", { name: /old token/ })
      .first()
      .waitFor();
    const search = page.getByRole("searchbox");
    await search.fill("09999");
    await page.getByRole("link", { name: "bulk/09999" }).waitFor();
    await search.fill("never/held");
    await page.getByRole("link", { name: "Open the page of never/held" }).waitFor();
    await search.fill("");
    await page.getByRole("link", { name: "bulk/00001" }).waitFor();
    const scroller = page.locator(".leases .scroller");
    await scroller.evaluate((element) => (element as unknown as { scrollTo(x: number, y: number): void }).scrollTo(0, 52 * 5_000));
    await page.getByRole("link", { name: "bulk/05004" }).waitFor();
    isFlooding = false;
    await flood;
    expect(await page.getByRole("row").count()).toBeLessThan(200);
    // By the processor time of its thread, which other work on the machine does not lengthen.
    expect(await busy()).toBeLessThan(0.5);
  });
});
