// The program palisade-dev: its stack works, ends on a signal, and leaves nothing behind.
import { chmodSync, existsSync, mkdirSync, rmSync, symlinkSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createGatewayClient } from "@palisade/client";
import { createLocker } from "@palisade/lock";
import { type Child, scratchFolder, startChild } from "@palisade/testkit";
import { expect, test } from "@palisade/testkit/vitest";

const program = fileURLToPath(new URL("../../dist/main.js", import.meta.url));
const anyPorts = ["--port", "0", "--redis-port", "0", "--postgres-port", "0"];

function start(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): { readonly child: Child; readonly said: () => string } {
  const lines: string[] = [];
  const child = startChild({
    env,
    command: process.execPath,
    args: [program, ...args],
    name: "palisade-dev",
    onLine: (line) => lines.push(line),
  });
  return { child, said: () => lines.join("\n") };
}

const listens = (url: string): Promise<boolean> =>
  fetch(url).then(
    () => true,
    () => false,
  );

test("G1 stores under a lease, refuses a stale token, and ends on SIGTERM with everything it started", async () => {
  const { child, said } = start(anyPorts);
  try {
    await expect.poll(said, { timeout: 60_000 }).toContain("Ready after");
    const address = (name: string): string => new RegExp(`^${name} +(\\S+)`, "m").exec(said())?.[1] ?? "";
    const [url, nodes] = [address("gateway"), address("redis").split(",")];
    expect(nodes).toHaveLength(5);
    const locker = createLocker({ nodes });
    const client = createGatewayClient({ url, apiKey: "palisade-on-this-machine-only" });
    const older = await locker.acquire("accounts/7");
    await older.release();
    const stored = await locker.using("accounts/7", (lease) => client.put("accounts/7", { n: 1 }, { lease }));
    expect(stored).toMatchObject({ ok: true });
    expect(await client.put("accounts/7", { n: 2 }, { token: older.token })).toMatchObject({ code: "fencing_token_stale" });
    await locker.close();
    child.signal("SIGTERM");
    expect(await child.waitForExit()).toEqual({ code: 0, signal: null });
    expect(await listens(url)).toBe(false);
  } finally {
    await child.kill();
  }
});

test("a port that is taken is one sentence with the option that helps, and ends the rest", async () => {
  const taken = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => taken.once("listening", resolve));
  const { port } = taken.address() as { readonly port: number };
  const { child, said } = start([...anyPorts.slice(0, 4), "--postgres-port", String(port)]);
  try {
    expect(await child.waitForExit()).toEqual({ code: 1, signal: null });
    expect(said()).toMatch(new RegExp(`^palisade-dev: .*${port}.*is taken.*Choose another port with --postgres-port\\.`, "s"));
  } finally {
    await child.kill();
    taken.close();
  }
});

test("a database that is not there is one sentence, and the nodes are ended", async ({ postgres }) => {
  const missing = new URL(postgres.url);
  missing.pathname = "/no-such-database";
  const { child, said } = start(["--port", "0", "--redis-port", "0", "--postgres", missing.href]);
  try {
    expect(await child.waitForExit()).toEqual({ code: 1, signal: null });
    expect(said()).toMatch(/^palisade-dev: there is no database no-such-database/);
  } finally {
    await child.kill();
  }
});

test("where no Redis can be had, Valkey in WebAssembly stands in; a server that was named is not replaced", async ({ onTestFinished }) => {
  const folder = scratchFolder("dev-bare");
  onTestFinished(() => rmSync(folder, { recursive: true }));
  chmodSync(folder, 0o755); // For the account that Postgres runs as.
  const programs = join(folder, "bin");
  mkdirSync(programs);
  // What a machine has that has no Redis and no way to fetch one.
  for (const name of ["sh", "cp", "chmod", "env", "setpriv"]) {
    const found = ["/bin", "/usr/bin"].map((place) => join(place, name)).find((path) => existsSync(path));
    if (found !== undefined) symlinkSync(found, join(programs, name));
  }
  const bare = { PATH: programs, PALISADE_CACHE_DIR: join(folder, "cache"), REDIS_SERVER_BIN: "" };
  const { child, said } = start(anyPorts, bare);
  const named = start(anyPorts, { ...bare, REDIS_SERVER_BIN: "/no/such/redis-server" });
  try {
    expect(await named.child.waitForExit()).toEqual({ code: 1, signal: null });
    expect(named.said()).toContain("REDIS_SERVER_BIN names /no/such/redis-server");
    await expect.poll(said, { timeout: 30_000 }).toContain("Ready after");
    expect(said()).toMatch(/^5 × Valkey in WebAssembly/);
    child.signal("SIGTERM");
    expect(await child.waitForExit()).toEqual({ code: 0, signal: null });
  } finally {
    await Promise.all([child.kill(), named.child.kill()]);
  }
});
