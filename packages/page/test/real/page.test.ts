// The operator's page over HTTP: who may see what, what its stream tells, and taking a lock away.
// How it looks and works in a browser: test/long/browser.test.ts.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createGatewayClient } from "@palisade/client";
import { type Gateway, makeApiKey } from "@palisade/gateway";
import { createLocker, type Locker, type LockerOptions } from "@palisade/lock";
import { queryAt } from "@palisade/testkit";
import { test as base, describe, eventually, expect, uniqueName } from "../../../gateway/test/support/fixtures.js";
import type { HistoryView, LeasePage, Released, ResourceView } from "../../src/messages.js";
import { type Keys, looksUntil, type PageClient, pageClient, pageSettings } from "../support/gateway.js";

interface Opened {
  readonly gateway: Gateway;
  readonly keys: Keys;
  readonly as: (caller: keyof Keys) => PageClient;
  /** A client that writes. */
  readonly client: ReturnType<typeof createGatewayClient>;
}

const patient = { ttlMs: 50_000, waitMs: 50_000, nodeTimeoutMs: 5_000 } as const;
const test = base
  .extend("open", ({ redis, startGateway }) => async (settings: object = {}): Promise<Opened> => {
    const { keys, settings: ours } = pageSettings();
    const gateway = await startGateway({ redisUrls: redis.urls, namespace: redis.namespace, ...ours, ...settings });
    const client = createGatewayClient({ url: gateway.url, apiKey: keys.worker });
    return { gateway, keys, client, as: (caller) => pageClient(gateway.adminUrl, keys[caller]) };
  })
  .extend("lockerOf", ({ redis }, { onCleanup }) => {
    const opened: Locker[] = [];
    onCleanup(async () => {
      await Promise.all(opened.map((locker) => locker.close()));
    });
    return (options: Partial<LockerOptions>): Locker => {
      const locker = createLocker({ nodes: redis.urls, namespace: redis.namespace, ...patient, ...options });
      opened.push(locker);
      return locker;
    };
  });

const json = async <Body>(asked: Promise<Response>): Promise<Body> => (await (await asked).json()) as Body;

describe("the page's files", () => {
  test("are served where the page is on, allow no foreign or inline script, and hold nothing secret", async ({ open }) => {
    const { gateway } = await open();
    const moved = await fetch(`${gateway.adminUrl}/page`, { redirect: "manual" });
    expect([moved.status, moved.headers.get("location")]).toEqual([308, "page/"]);
    for (const file of ["", "app.js", "style.css", "icon.svg"]) {
      const response = await fetch(`${gateway.adminUrl}/page/${file}`);
      const policy = response.headers.get("content-security-policy") ?? "";
      expect([file, response.status]).toEqual([file, 200]);
      expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'");
      expect(policy).not.toMatch(/unsafe|https?:|\*/);
      expect(response.headers.get("x-content-type-options")).toBe("nosniff");
      const text = await response.text();
      expect(text).not.toMatch(/<script>|<style>| on\w+=| style="/);
    }
  });

  test("are not there where the page is off, which is the default", async ({ gateway }) => {
    for (const path of ["", "/", "/app.js", "/live", "/leases", "/resource?name=r"])
      expect((await fetch(`${gateway.adminUrl}/page${path}`)).status).toBe(404);
    expect((await fetch(`${gateway.adminUrl}/page/force-release`, { method: "POST" })).status).toBe(404);
  });
});

describe("without the scope", () => {
  test("a wrong key, no key and the key of a worker see nothing and can do nothing", async ({ open, lockerOf }) => {
    const { gateway, keys, client, as } = await open();
    const lease = await lockerOf({ label: "worker-7" }).acquire("orders/42");
    await client.put("orders/42", { secret: "document" }, { lease });
    const order = { resource: "orders/42", reason: "x", token: lease.token };
    const callers = [
      [pageClient(gateway.adminUrl, undefined), 401],
      [pageClient(gateway.adminUrl, `${keys.operator.slice(0, -1)}x`), 401],
      [as("worker"), 403],
    ] as const;
    for (const [caller, status] of callers) {
      const answers = [
        caller.get("live"),
        caller.get("leases"),
        caller.get("resource?name=orders%2F42"),
        caller.post("force-release", order),
      ];
      for (const answer of await Promise.all(answers)) {
        expect(answer.status).toBe(status);
        expect(await answer.text()).not.toMatch(new RegExp(`${lease.token}|worker-7|secret`));
      }
    }
    expect((await as("observer").post("force-release", order)).status).toBe(403);
    expect((await lease.extend()).outcome).toBe("renewed");
  });

  test("of a name, a key sees neither its leases nor its refusals, and opens and takes away none", async ({ open, lockerOf }) => {
    const { client, as } = await open();
    const locker = lockerOf({ label: "worker-7" });
    const [ours, theirs] = [await locker.acquire("orders/1"), await locker.acquire("payroll/1")];
    for (const [name, lease] of [
      ["orders/1", ours],
      ["payroll/1", theirs],
    ] as const) {
      await client.put(name, {}, { lease });
      await client.put(name, {}, { token: lease.token - 1 });
    }
    await using stream = await as("ofOrders").live();
    await eventually(() => stream.state?.leases?.held).toBe(1);
    expect((await json<LeasePage>(as("ofOrders").get("leases"))).rows.map(({ resource }) => resource)).toEqual(["orders/1"]);
    expect((await json<LeasePage>(as("observer").get("leases"))).rows).toHaveLength(2);
    expect((await json<LeasePage>(as("ofOrders").get("leases?search=payroll"))).total).toBe(0);
    expect((await as("ofOrders").get("resource?name=payroll%2F1")).status).toBe(403);
    const order = { resource: "payroll/1", reason: "x", token: theirs.token };
    expect((await as("ofOrders").post("force-release", order)).status).toBe(403);
    await client.put("payroll/1", {}, { token: theirs.token - 1 });
    await client.put("orders/1", {}, { token: ours.token - 1 });
    await eventually(() => stream.refusals.flat().map(({ resource }) => resource)).toEqual(["orders/1"]);
    expect(stream.text).not.toContain("payroll");
    expect((await theirs.extend()).outcome).toBe("renewed");
  });

  test("a stream ends when its key is withdrawn", async ({ startGateway, redis }) => {
    const folder = mkdtempSync(join(tmpdir(), "palisade-page-"));
    const apiKeysFile = join(folder, "keys.json");
    const { key, sha256 } = makeApiKey();
    const other = { id: "other", sha256: makeApiKey().sha256, scopes: ["read:"] };
    const keep = (...keys: object[]) => writeFileSync(apiKeysFile, JSON.stringify({ keys }));
    keep(other, { id: "operator", sha256, scopes: ["observe:"] });
    const gateway = await startGateway({ redisUrls: redis.urls, namespace: redis.namespace, page: "on", apiKeysFile });
    await using stream = await pageClient(gateway.adminUrl, key).live();
    await eventually(() => stream.state).toBeDefined();
    expect(stream.hasEnded).toBe(false);
    keep(other);
    await gateway.reloadCredentials();
    await eventually(() => stream.hasEnded).toBe(true);
    rmSync(folder, { recursive: true });
  });
});

describe("the stream", () => {
  test("tells a refusal within a second, with both tokens, its sender and the request's id, and no document", async ({
    open,
    lockerOf,
  }) => {
    const { client, as } = await open();
    const lease = await lockerOf({}).acquire("orders/42");
    await client.put("orders/42", { secret: "document" }, { lease });
    await using stream = await as("operator").live();
    await eventually(() => stream.hello).toMatchObject({
      principal: "operator",
      knowsLock: true,
      refusedSince: expect.any(Number),
    });
    await client.put("orders/42", { secret: "late" }, { token: lease.token - 1 });
    expect(await looksUntil(() => stream.refusals.length === 1)).toBeLessThan(100);
    expect(stream.refusals[0]).toMatchObject([
      {
        resource: "orders/42",
        code: "fencing_token_stale",
        presentedToken: lease.token - 1,
        currentToken: lease.token,
        caller: "worker",
        address: expect.stringMatching(/127\.0\.0\.1$/),
        requestId: expect.any(String),
      },
    ]);
    await eventually(() => stream.state?.writes).toMatchObject({});
    expect(stream.text).not.toMatch(/secret|document|late"/);
    await using second = await as("operator").live();
    await eventually(() => second.hello?.refusals.length).toBe(1);
  });

  test("of a flood tells the newest fifty at a time, and shows a hundred of a resource", async ({ open, lockerOf }) => {
    const { client, as } = await open();
    const lease = await lockerOf({}).acquire("orders/42");
    await client.put("orders/42", {}, { lease });
    await using stream = await as("operator").live();
    await eventually(() => stream.hello).toBeDefined();
    for (let sent = 0; sent < 300; sent += 100)
      await Promise.all(Array.from({ length: 100 }, (_, n) => client.put("orders/42", {}, { token: lease.token - 1 - sent - n })));
    await eventually(() => stream.refusals.at(-1)?.[0]?.id).toBe(300);
    expect(Math.max(...stream.refusals.map((rows) => rows.length))).toBeLessThanOrEqual(50);
    const view = await json<ResourceView>(as("operator").get("resource?name=orders%2F42"));
    expect(view.refusals).toHaveLength(100);
    expect(view.refusals[0]?.id).toBe(300);
  });

  test("says that a killed node is silent within two seconds, and that one without its memory waits, and for how long", async ({
    fleet,
    startGateway,
  }) => {
    const { nodes, urls } = await fleet({ nodes: 5 });
    const { keys, settings } = pageSettings();
    const gateway = await startGateway({ redisUrls: urls, ...settings });
    await using stream = await pageClient(gateway.adminUrl, keys.observer).live();
    const states = () => stream.state?.fleet?.nodes.map(({ state }) => state).join(" ");
    await eventually(states).toBe("votes votes votes votes votes");
    await nodes[3]?.kill();
    expect(await looksUntil(() => states() === "votes votes votes silent votes")).toBeLessThan(200);
    await nodes[1]?.restart({ forget: true });
    await eventually(states).toBe("votes waits votes silent votes");
    const [, waiting, , silent] = stream.state?.fleet?.nodes ?? [];
    expect(silent?.reason).toMatch(/ECONNREFUSED|closed|lost/);
    await eventually(() => stream.state?.fleet?.nodes[1]?.readyInMs).toBeGreaterThan(10_000);
    expect(waiting?.address).toBe(new URL(urls[1] ?? "").host);
    await Promise.all([0, 2].map((at) => nodes[at]?.kill()));
    await eventually(() => stream.state?.leases?.trouble).toMatch(/1 of 5 nodes answered/);
  });

  test("tells which checks of /ready fail, and for how long, while Postgres stands still", async ({ open, proxy, database }) => {
    const { as } = await open({ databaseUrl: proxy.urlOf(database.url) });
    await using stream = await as("observer").live();
    await eventually(() => stream.state?.faults).toEqual([]);
    await proxy.partition();
    await eventually(() => stream.state?.faults).toMatchObject([{ check: "database", detail: expect.stringContaining("no answer") }]);
    const { forMs = 0 } = stream.state?.faults[0] ?? {};
    await eventually(() => stream.state?.faults[0]?.forMs).toBeGreaterThan(forMs);
    await proxy.heal();
    await eventually(() => stream.state?.faults).toEqual([]);
  });

  test("is bounded in its readers", async ({ open }) => {
    const { as } = await open();
    const streams = await Promise.all(Array.from({ length: 64 }, () => as("observer").live()));
    const refused = await as("observer").get("live");
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "5"]);
    await streams[0]?.leave();
    await eventually(async () => {
      const response = await as("observer").get("live");
      await response.body?.cancel();
      return response.status;
    }).toBe(200);
    await Promise.all(streams.map((stream) => stream.leave()));
  });
});

test("a lease, and the page of its resource, say how many wait for it", async ({ open, lockerOf }) => {
  const { as } = await open();
  const lease = await lockerOf({}).acquire("r");
  const next = lockerOf({}).acquire("r");
  await using _stream = await as("observer").live();
  await eventually(async () => (await json<LeasePage>(as("observer").get("leases"))).rows).toMatchObject([{ resource: "r", waiting: 1 }]);
  expect(await json<ResourceView>(as("observer").get("resource?name=r"))).toMatchObject({ lock: { token: lease.token, waiting: 1 } });
  await lease.release();
  await (await next).release();
});

describe("many leases", () => {
  test("are found by name and holder, in each order, a part at a time, and never more than two hundred", async ({ open, lockerOf }) => {
    const { as } = await open();
    const lockers = ["a", "b"].map((host) => lockerOf({ label: `worker (host ${host})` }));
    for (let start = 0; start < 2_000; start += 1_000)
      await Promise.all(
        Array.from({ length: 1_000 }, (_, i) => lockers[i % 2]?.acquire(`bulk/${String(start + i).padStart(5, "0")}`, { ttlMs: 45_000 })),
      );
    const last = await lockers[0]?.acquire("a<b>\u001b", { ttlMs: 50_000 });
    await using stream = await as("observer").live();
    await eventually(() => stream.state?.leases?.held).toBe(2_001);
    const page = (query: string) => json<LeasePage>(as("observer").get(`leases?${query}`));
    expect(await page("count=3&from=1800")).toMatchObject({ total: 2_001, from: 1_800, rows: [{ resource: "bulk/01799" }, {}, {}] });
    expect(await page("search=BULK/0000")).toMatchObject({ total: 10 });
    expect(await page("search=host%20B&count=1")).toMatchObject({ total: 1_000, rows: [{ holder: "worker (host b)", state: "held" }] });
    expect((await page("order=ends")).rows.at(-1)?.resource).not.toBe("a<b>\u001b");
    // On a busy machine all may have been renewed by now, and this one before the others.
    await eventually(async () => {
      await last?.extend();
      return (await page("order=ends&from=2000")).rows;
    }).toMatchObject([{ resource: "a<b>\u001b", token: last?.token }]);
    expect((await page("order=held")).rows).toHaveLength(100);
    expect((await as("observer").get("leases?count=201")).status).toBe(400);
    expect((await as("observer").get("leases?order=size")).status).toBe(400);
  });
});

describe("a resource", () => {
  test("has its holder, each node's word, the fence, the revision and the history, and never the document", async ({ open, lockerOf }) => {
    const { client, as } = await open();
    const name = uniqueName("orders");
    const lease = await lockerOf({ label: "worker-7" }).acquire(name);
    await client.put(name, { secret: "document" }, { lease });
    const response = await as("observer").get(`resource?${new URLSearchParams({ name })}`);
    const text = await response.text();
    expect(text).not.toContain("secret");
    expect(JSON.parse(text)).toMatchObject({
      lock: { state: "held", holder: "worker-7", token: lease.token, nodes: [{ node: "n1" }, {}, {}, {}, {}] },
      fence: { token: lease.token, rev: 1, hasDocument: true, holder: "worker" },
      history: { rows: [{ rev: 1, op: "put", token: lease.token, holder: "worker" }], tokens: [{ token: lease.token, writes: 1 }] },
      refusals: [],
      mayRelease: false,
    });
    expect(await json<ResourceView>(as("operator").get("resource?name=never%2Fused"))).toMatchObject({
      lock: { state: "free", token: expect.any(Number) },
      mayRelease: true,
    });
  });

  test("tells the writes of each of its last tokens, also of those that its last hundred writes do not reach", async ({
    open,
    lockerOf,
  }) => {
    const { client, as } = await open();
    const name = uniqueName("orders");
    const locker = lockerOf({ label: "worker-7" });
    const first = await locker.acquire(name);
    for (let n = 0; n < 3; n += 1) await client.put(name, { n }, { lease: first });
    await first.release();
    const second = await locker.acquire(name);
    await Promise.all(Array.from({ length: 100 }, (_, n) => client.put(name, { n }, { lease: second })));
    const view = await json<ResourceView>(as("observer").get(`resource?${new URLSearchParams({ name })}`));
    const history = view.history as HistoryView;
    expect(history.rows.map(({ token }) => token)).toEqual(Array.from({ length: 100 }, () => second.token));
    expect(history.tokens).toMatchObject([
      { token: second.token, writes: 100, firstAt: history.rows.at(-1)?.at, lastAt: history.rows[0]?.at },
      { token: first.token, writes: 3 },
    ]);
  });

  test("may have a name that only the lock takes", async ({ open, lockerOf }) => {
    const { as } = await open();
    const name = "<img src=x onerror=alert(1)>\u001b[2J/..";
    await lockerOf({ label: "worker-7" }).acquire(name);
    const view = await json<ResourceView>(as("operator").get(`resource?${new URLSearchParams({ name })}`));
    expect(view).toMatchObject({ lock: { state: "held", holder: "worker-7" }, refusals: [] });
    expect(view.fence).toBeUndefined();
  });
});

describe("taking a lock away", () => {
  test("G1 fences the old holder at once, keeps the reason, and is logged with who did it", async ({ open, lockerOf, database }) => {
    const { client, as } = await open();
    const lease = await lockerOf({ label: "worker-7" }).acquire("orders/42");
    await client.put("orders/42", { n: 1 }, { lease });
    const order = { resource: "orders/42", reason: "host b is gone", token: lease.token };
    const done = await json<Released>(as("operator").post("force-release", order));
    expect(done).toMatchObject({ released: true, removed: ["worker-7"], sealed: true });
    expect(done.fence).toBeGreaterThan(lease.token);
    expect(await client.put("orders/42", { n: 2 }, { token: lease.token })).toMatchObject({ ok: false, code: "fencing_token_stale" });
    await expect(lease.extend()).rejects.toMatchObject({ code: "LEASE_LOST" });
    const moved = "select changed_by, reason, token from palisade.fence_changes where resource = 'orders/42'";
    expect(await queryAt(database.url, moved)).toEqual([{ changed_by: "operator", reason: "host b is gone", token: String(done.fence) }]);
    const view = await json<ResourceView>(as("operator").get("resource?name=orders%2F42"));
    const shown = { by: "operator", reason: "host b is gone", previousToken: lease.token, token: done.fence };
    expect(view.fence).toMatchObject({ moved: { ...shown, at: expect.any(Number) } });
    expect(await client.fence("orders/42")).toMatchObject({ ok: true, moved: { ...shown, at: expect.stringMatching(/Z$/) } });
  });

  test("L2 changes nothing where another holder has it by then, or nobody", async ({ open, lockerOf }) => {
    const { as } = await open();
    const [old, next] = [lockerOf({ label: "worker-7" }), lockerOf({ label: "worker-7" })];
    const lease = await old.acquire("orders/42");
    const order = { resource: "orders/42", reason: "x", token: lease.token };
    await lease.release();
    expect(await json(as("operator").post("force-release", order))).toMatchObject({
      released: false,
      because: expect.stringContaining("nobody holds it any more"),
    });
    const later = await next.acquire("orders/42");
    expect(await json(as("operator").post("force-release", order))).toMatchObject({
      released: false,
      because: expect.stringContaining("under another token"),
    });
    expect((await later.extend()).outcome).toBe("renewed");
  });

  test("is refused without a reason, as something else than JSON, and with members that it does not know", async ({ open, lockerOf }) => {
    const { gateway, keys, as } = await open();
    const lease = await lockerOf({ label: "worker-7" }).acquire("orders/42");
    const order = { resource: "orders/42", reason: "x", token: lease.token };
    const wrong = [{ ...order, reason: " " }, { ...order, force: true }, { ...order, token: "7" }, { ...order, resource: "" }, []];
    for (const body of wrong) expect((await as("operator").post("force-release", body)).status).toBe(400);
    const headers = { Authorization: `Bearer ${keys.operator}`, "Content-Type": "text/plain" };
    const plain = await fetch(`${gateway.adminUrl}/page/force-release`, { method: "POST", headers, body: JSON.stringify(order) });
    expect(plain.status).toBe(415);
    expect((await lease.extend()).outcome).toBe("renewed");
  });
});

test("without the lock's nodes the page still tells writes and refusals", async ({ startGateway }) => {
  const { keys, settings } = pageSettings();
  const gateway = await startGateway(settings);
  const client = createGatewayClient({ url: gateway.url, apiKey: keys.worker });
  const name = uniqueName("orders");
  const page = pageClient(gateway.adminUrl, keys.operator);
  await using stream = await page.live();
  await client.put(name, {}, { token: 7 });
  await client.put(name, {}, { token: 6 });
  await eventually(() => stream.refusals.length).toBe(1);
  expect(stream.hello?.knowsLock).toBe(false);
  await eventually(() => stream.text).toMatch(/"writes":\{[^}]*"stale":1/);
  expect((await page.get("leases")).status).toBe(404);
  expect(await json<ResourceView>(page.get(`resource?${new URLSearchParams({ name })}`))).toMatchObject({
    fence: { token: 7 },
    mayRelease: false,
  });
});
