// The program palisade-dev: its stack works, ends on a signal, and leaves nothing behind.
import { chmodSync, existsSync, mkdirSync, rmSync, symlinkSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createGatewayClient } from "@palisade/client";
import { createLocker } from "@palisade/lock";
import { type Child, scratchFolder, startNode } from "@palisade/testkit";
import { test as base, expect } from "@palisade/testkit/vitest";

const program = fileURLToPath(new URL("../../dist/main.js", import.meta.url));
const operators = fileURLToPath(new URL("../../../cli/dist/main.js", import.meta.url));
const anyPorts = ["--port", "0", "--redis-port", "0", "--postgres-port", "0"];

interface Started {
  readonly child: Child;
  readonly said: () => string;
}
type Start = (args: readonly string[], env?: Readonly<Record<string, string>>) => Started;

const test = base.extend("start", ({ task: _test }, { onCleanup }): Start => {
  const started: Child[] = [];
  onCleanup(async () => void (await Promise.all(started.map((child) => child.kill()))));
  return (args, env = {}) => {
    const lines: string[] = [];
    const child = startNode(program, args, { env, name: "palisade-dev", onLine: (line) => lines.push(line) });
    started.push(child);
    return { child, said: () => lines.join("\n") };
  };
});

async function expectEnd({ child, said }: Started, code: number, words: RegExp): Promise<void> {
  if (code === 0) child.signal("SIGTERM");
  expect(await child.waitForExit()).toEqual({ code, signal: null });
  expect(said()).toMatch(words);
}

test("G1 stores under a lease, refuses a stale token, shows it to palisade by the settings that it prints, and ends on SIGTERM with everything it started", async ({
  start,
}) => {
  const stack = start(anyPorts);
  await stack.child.says(/Ready after/);
  const address = (name: string): string => new RegExp(`^${name} +(\\S+)`, "m").exec(stack.said())?.[1] ?? "";
  const [url, nodes] = [address("gateway"), address("redis").split(",")];
  expect(nodes).toHaveLength(5);
  const locker = createLocker({ nodes });
  const client = createGatewayClient({ url, apiKey: "palisade-on-this-machine-only" });
  const older = await locker.acquire("accounts/7");
  await older.release();
  const stored = await locker.using("accounts/7", (lease) => client.put("accounts/7", { n: 1 }, { lease }));
  expect(stored).toMatchObject({ ok: true });
  expect(await client.put("accounts/7", { n: 2 }, { token: older.token })).toMatchObject({ code: "fencing_token_stale" });
  const settings = [...stack.said().matchAll(/(PALISADE_\w+)=(\S+)/g)].map(([, name, value]) => [name, value]);
  const asked = startNode(operators, ["refused"], { env: Object.fromEntries(settings), name: "palisade" });
  await asked.says(/\taccounts\/7\tfencing_token_stale\t/);
  expect(await asked.waitForExit()).toMatchObject({ code: 0 });
  await locker.close();
  await expectEnd(stack, 0, /Ready after/);
  await expect(fetch(url)).rejects.toThrow();
});

test("a port that is taken is one sentence with the option that helps, and ends the rest", async ({ start, onTestFinished }) => {
  const taken = createServer().listen(0, "127.0.0.1");
  onTestFinished(() => void taken.close());
  await new Promise((resolve) => taken.once("listening", resolve));
  const { port } = taken.address() as { readonly port: number };
  const stack = start([...anyPorts.slice(0, 4), "--postgres-port", String(port)]);
  await expectEnd(stack, 1, new RegExp(`^palisade-dev: .*${port}.*is taken.*Choose another port with --postgres-port\\.`, "s"));
});

test("a database that is not there is one sentence, and the nodes are ended", async ({ postgres, start }) => {
  const missing = Object.assign(new URL(postgres.url), { pathname: "/no-such-database" }).href;
  const stack = start(["--port", "0", "--redis-port", "0", "--postgres", missing]);
  await expectEnd(stack, 1, /^palisade-dev: there is no database no-such-database/);
});

test("where no Redis can be had, Valkey in WebAssembly stands in; a server that was named is not replaced", async ({
  start,
  onTestFinished,
}) => {
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
  const [stack, named] = [start(anyPorts, bare), start(anyPorts, { ...bare, REDIS_SERVER_BIN: "/no/such/redis-server" })];
  await expectEnd(named, 1, /REDIS_SERVER_BIN names \/no\/such\/redis-server/);
  await stack.child.says(/Ready after/);
  await expectEnd(stack, 0, /^5 × Valkey in WebAssembly/);
});
