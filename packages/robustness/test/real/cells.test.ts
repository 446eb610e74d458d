// The example of cells as its users run it, over two whole stacks: a move that is killed before
// each of its steps is finished by running it again, and a writer of the old cell is refused then.
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, symlinkSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { createGatewayClient, type GatewayClient, rawJson } from "@palisade/client";
import { createLocker, type Locker } from "@palisade/lock";
import { type Child, Closers, PostgresServer, RedisFleet, scratchFolder, startChild } from "@palisade/testkit";
import { test as base, describe, expect } from "@palisade/testkit/vitest";
import { Gateway } from "../../src/servers/gateway.js";

const resolved = createRequire(import.meta.url);
const packageRoot = (name: string): string => dirname(resolved.resolve(`${name}/package.json`));
const example = join(packageRoot("@palisade/robustness"), "..", "..", "examples");
const TTL_MS = 1_000;
const PATIENCE_MS = 120_000;
/** As Postgres writes it, with a number that JavaScript would round. */
const DOCUMENT = '{"n": 12345678901234567890}';
/** What the program prints before each change. */
const steps = ["close", "raise", "copy", "point", "release"] as const;
/** At this line the program is killed or stopped by a real signal. */
const SIGNAL_AT = `data:text/javascript,${encodeURIComponent(
  "const { log } = console; console.log = (...words) => { log(...words); if (words[0] === process.env.AT) process.kill(process.pid, process.env.WITH); };",
)}`;

interface Cell {
  readonly settings: { readonly nodes: readonly string[]; readonly url: string; readonly apiKey: string };
  readonly locker: Locker;
  readonly client: GatewayClient;
}

interface Site {
  readonly a: Cell;
  readonly b: Cell;
  /** The example's program; resolves with what it printed. */
  run(...args: readonly string[]): Promise<{ readonly code: number | null; readonly text: string }>;
  start(env: Readonly<Record<string, string>>, ...args: readonly string[]): { readonly child: Child; readonly lines: readonly string[] };
}

async function startCell(closers: Closers): Promise<Cell> {
  const [fleet, server] = await Promise.all([RedisFleet.start({ nodes: 3 }), PostgresServer.start()]);
  closers.use(fleet);
  closers.use(server);
  const apiKey = "a-key-of-this-test-only";
  const scopes = ["read:", "write:", "seal:", "admin:"];
  const keys = [{ id: "test", sha256: createHash("sha256").update(apiKey).digest("hex"), scopes }];
  const env = { DATABASE_URL: server.url, PALISADE_REDIS_URLS: fleet.urls.join(","), PALISADE_API_KEYS: JSON.stringify(keys) };
  const gateway = closers.use(new Gateway("gateway", { ...env, PALISADE_DURABILITY: "local" }));
  await gateway.start();
  await gateway.ready();
  const { url } = await gateway.link();
  const locker = closers.use(createLocker({ nodes: [...fleet.urls], ttlMs: TTL_MS }));
  return { settings: { nodes: fleet.urls, url, apiKey }, locker, client: createGatewayClient({ url, apiKey }) };
}

/** The example with the packages of this workspace, as npm would install it. */
function installed(): string {
  const folder = scratchFolder("cells");
  cpSync(example, folder, { recursive: true, filter: (path) => !path.includes("node_modules") });
  mkdirSync(join(folder, "node_modules", "@palisade"), { recursive: true });
  for (const name of ["lock", "client"]) symlinkSync(packageRoot(`@palisade/${name}`), join(folder, "node_modules", "@palisade", name));
  return folder;
}

const test = base.extend("site", { scope: "file" }, async ({ postgres: _ }, { onCleanup }): Promise<Site> => {
  const closers = new Closers();
  onCleanup(() => closers[Symbol.asyncDispose]());
  const [b, folder] = [await startCell(closers), installed()];
  const a = await startCell(closers);
  const start: Site["start"] = (env, ...args) => {
    const lines: string[] = [];
    const CELLS = JSON.stringify({ a: a.settings, b: b.settings });
    const child = startChild({
      command: process.execPath,
      args: ["--import", SIGNAL_AT, join(folder, "cells", "cells.js"), ...args],
      env: { CELLS, TTL_MS: String(TTL_MS), ...env },
      name: "cells.js",
      onLine: (line) => lines.push(line),
    });
    return { child, lines };
  };
  const run: Site["run"] = async (...args) => {
    const { child, lines } = start({}, ...args);
    const { code } = await child.waitForExit();
    return { code, text: lines.join("\n") };
  };
  return { a, b, run, start };
});

/** Written once in cell a, whose tokens are far above those of cell b. */
async function written({ a }: Site, resource: string): Promise<void> {
  await a.locker.fleet.highestToken(resource, (await a.locker.fleet.highestToken(resource)) + 10_000_000);
  await a.locker.using(resource, async (lease) => {
    expect(await a.client.put(resource, rawJson(DOCUMENT), { lease })).toMatchObject({ ok: true });
  });
}

describe("a resource that moves to another cell", { timeout: PATIENCE_MS }, () => {
  test("G1 T1 takes its token along: a stale writer is refused in both cells, and later tokens are higher", async ({ site }) => {
    const { a, b, run } = site;
    const resource = "acme/orders/1";
    await written(site, resource);
    const paused = await a.locker.acquire(resource, { ttlMs: 300 }); // It never comes back in time.
    const moved = await run("move", resource, "b");
    expect(moved).toEqual({ code: 0, text: [...steps, "moved"].join("\n") });
    for (const { client } of [a, b])
      expect(await client.put(resource, { by: "the stale writer" }, { token: paused.token })).toMatchObject({
        code: "fencing_token_stale",
      });
    expect(await b.client.get(resource)).toMatchObject({ text: DOCUMENT });
    const next = await b.locker.acquire(resource);
    expect(next.token).toBeGreaterThan(paused.token);
    expect(await b.client.seal(resource, { lease: next })).toMatchObject({ ok: true });
    await next.release();
    // A lease of the old cell is granted, and writes nothing.
    const late = await a.locker.acquire(resource);
    expect(await a.client.put(resource, { by: "the old cell" }, { lease: late })).toMatchObject({ code: "fencing_token_stale" });
    await late.release();
    expect(await run("set", resource, "2")).toEqual({ code: 0, text: "stored in b" });
    expect(await run("get", resource)).toEqual({ code: 0, text: "2 in b" });
    expect(await run("move", resource, "b")).toEqual({ code: 0, text: "it is there already" });
  });

  for (const step of steps)
    test(`G1 G3 is complete once the move is run again, where it was killed before the step ${step}`, async ({ site }) => {
      const { a, b, run, start } = site;
      const resource = `acme/${step}`;
      await written(site, resource);
      const paused = await a.locker.acquire(resource, { ttlMs: 300 });
      const { child } = start({ AT: step, WITH: "SIGKILL" }, "move", resource, "b");
      expect((await child.waitForExit()).signal).toBe("SIGKILL");
      // It is in one cell for everybody, and nothing is lost.
      const found = await run("get", resource);
      expect(found.text).toMatch(step === "release" ? / in b$/ : / in a$/);
      expect((await run("move", resource, "b")).text).toMatch(/(moved|it is there already)$/);
      for (const { client } of [a, b])
        expect(await client.put(resource, {}, { token: paused.token })).toMatchObject({ code: "fencing_token_stale" });
      expect(await b.client.get(resource)).toMatchObject({ text: DOCUMENT });
      const stored = await b.locker.using(resource, (lease) => b.client.put(resource, 2, { lease }));
      expect(stored).toMatchObject({ ok: true });
    });

  test("G3 keeps what a holder wrote that came while the mover was paused past its lease", async ({ site }) => {
    const { a, run, start } = site;
    const resource = "acme/paused";
    await written(site, resource);
    const { child, lines } = start({ AT: "close", WITH: "SIGSTOP" }, "move", resource, "b");
    await expect.poll(() => lines.includes("close"), { timeout: PATIENCE_MS }).toBe(true);
    const newer = await a.locker.acquire(resource, { waitMs: PATIENCE_MS });
    expect(await a.client.put(resource, 3, { lease: newer })).toMatchObject({ ok: true });
    child.signal("SIGCONT");
    expect((await child.waitForExit()).code).toBe(1);
    expect(lines.join("\n")).toMatch(/a newer holder wrote acme\/paused: run this again/);
    await newer.release();
    expect((await run("move", resource, "b")).text).toMatch(/moved$/);
    expect(await run("get", resource)).toEqual({ code: 0, text: "3 in b" });
  });

  test("G1 that was never written is closed in the old cell all the same", async ({ site }) => {
    const { a, b, run } = site;
    const paused = await a.locker.acquire("acme/new", { ttlMs: 300 });
    expect((await run("move", "acme/new", "b")).text).toMatch(/moved$/);
    for (const { client } of [a, b])
      expect(await client.put("acme/new", 1, { token: paused.token })).toMatchObject({ code: "fencing_token_stale" });
    expect(await run("set", "acme/new", "2")).toEqual({ code: 0, text: "stored in b" });
  });
});
