// Which Redis server is taken, and what is said when there is none.
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { directivesOf } from "../../src/redis/program.js";
import { describeRedis, findRedis } from "../../src/resolve/redis.js";

let folder = "";

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "palisade test "));
});

afterEach(async () => {
  await rm(folder, { recursive: true });
});

/** A program that answers --version as a server does; the resolver asks for nothing else. */
async function impostor(path: string, says: string): Promise<string> {
  await mkdir(join(path, ".."), { recursive: true });
  await writeFile(path, `#!/bin/sh\necho '${says}'\n`);
  await chmod(path, 0o755);
  return path;
}

async function script(name: string, body: string): Promise<void> {
  await writeFile(join(folder, name), `#!/bin/sh\nPATH=/usr/bin:/bin\n${body}\n`, { mode: 0o755 });
}

const REDIS_7 = "Redis server v=7.2.4 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=0";
const VALKEY_8 = "Valkey server v=8.1.0 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=0";
const REDIS_5 = "Redis server v=5.0.14 sha=00000000:0 malloc=jemalloc-5.1.0 bits=64 build=0";

test("the server named by REDIS_SERVER_BIN is taken before any on PATH", async () => {
  const named = await impostor(join(folder, "named", "my-redis"), REDIS_7);
  await impostor(join(folder, "path", "redis-server"), VALKEY_8);
  const found = await findRedis({ REDIS_SERVER_BIN: named, PATH: join(folder, "path") });
  expect(found).toEqual({ binary: named, product: "Redis", version: "7.2.4", from: "REDIS_SERVER_BIN" });
  expect(describeRedis(found)).toBe(`Redis 7.2.4 (${named}, REDIS_SERVER_BIN)`);
});

test("a REDIS_SERVER_BIN that does not run is an error, not a reason to take another", async () => {
  await impostor(join(folder, "redis-server"), REDIS_7);
  await expect(findRedis({ REDIS_SERVER_BIN: join(folder, "gone"), PATH: folder })).rejects.toThrow(
    /REDIS_SERVER_BIN names .*gone, but .* does not run/,
  );
});

test("valkey-server on PATH will do, and a redis-server that is too old will not", async () => {
  await impostor(join(folder, "old", "redis-server"), REDIS_5);
  const valkey = await impostor(join(folder, "new", "valkey-server"), VALKEY_8);
  const found = await findRedis({ PATH: `${join(folder, "old")}:${join(folder, "new")}` });
  expect(found).toMatchObject({ binary: valkey, product: "Valkey", version: "8.1.0" });
});

test("when none is to be had, the error names all that was tried and what helps", async () => {
  await impostor(join(folder, "redis-server"), REDIS_5);
  const error = await findRedis({ PATH: folder, PALISADE_CACHE_DIR: join(folder, "cache") }).then(
    () => new Error("found one"),
    (cause: Error) => cause,
  );
  const lines = error.message.split("\n");
  expect(lines[0]).toBe("no Redis server can be had on this machine. Tried:");
  expect(lines[1]).toBe("  - REDIS_SERVER_BIN: not set");
  expect(lines[2]).toContain(`PATH: ${join(folder, "redis-server")} is Redis 5.0.14, older than 7.0`);
  expect(lines[3]).toBe("  - packages without root: apt-get is not on PATH");
  expect(error.message).toContain("sudo apt-get install redis-server");
  expect(error.message).toContain("PALISADE_TEST_PROVIDER=docker");
});

test("where the distribution's package is too old as well, installing it is no advice", async () => {
  await impostor(join(folder, "redis-server"), REDIS_5);
  await script("apt-get", 'case "$*" in *download*) touch redis.deb ;; esac');
  await script("dpkg", '[ "$1" = -x ] || exit 0; mkdir -p "$3/usr/bin"; cp "$(dirname "$0")/redis-server" "$3/usr/bin/"');
  const error = await findRedis({ PATH: folder, PALISADE_CACHE_DIR: join(folder, "cache") }).then(
    () => new Error("found one"),
    (cause: Error) => cause,
  );
  expect(error.message).toMatch(/packages without root: .*redis-server is Redis 5\.0\.14, older than 7\.0\n/);
  expect(error.message).not.toContain("apt-get install");
  expect(error.message).toContain("REDIS_SERVER_BIN=/path/to/redis-server    (Redis 7.0 or newer, or Valkey)");
});

// What a node is told at its start, wherever it runs.
const spec = { name: "n1", appendfsync: "always", clock: "real", config: {} } as const;
const at = { host: "10.0.0.7", port: 20_001 };

test("a member that is a cluster announces the address at which clients find it", () => {
  const config = { "cluster-enabled": "yes" };
  const announced = { "cluster-announce-ip": "10.0.0.7", "cluster-announce-port": "20001" };
  expect(directivesOf({ ...spec, config }, at)).toMatchObject({ ...config, ...announced });
  expect(directivesOf(spec, at)).not.toHaveProperty("cluster-announce-ip");
});

test("the directives of a fleet win over the testkit's own", () => {
  expect(directivesOf({ ...spec, config: { appendonly: "no" } }, at)).toMatchObject({ appendonly: "no", save: "" });
});
