// Where no Redis server can be had, a demo runs all the same and says on what; nothing else does.
import { spawnSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";

const program = fileURLToPath(new URL("../../.build/test/real/redis-fallback.program.js", import.meta.url));
let empty = "";

beforeAll(async () => {
  empty = await mkdtemp(join(tmpdir(), "palisade-test-"));
});

afterAll(async () => {
  await rm(empty, { recursive: true });
});

function onBareMachine(
  accepts: "any" | "real",
  wishes: Readonly<Record<string, string>> = {},
): { status: number | null; stdout: string; stderr: string } {
  // An empty folder for PATH: no server, no apt-get, no setpriv; and no engine for containers.
  const env = { PATH: empty, PALISADE_CACHE_DIR: empty, HOME: empty, DOCKER_HOST: `unix://${empty}/docker.sock`, ...wishes };
  return spawnSync(process.execPath, [program, accepts], { env, encoding: "utf8" });
}

test("a caller that accepts any server gets Valkey in WebAssembly, with a notice that says why and what would help", () => {
  const { status, stdout, stderr } = onBareMachine("any");
  expect(stdout).toMatch(/^2 × Valkey in WebAssembly .* PONG\n$/);
  expect(stderr).toMatch(/^no Redis server can be had on this machine/);
  expect(stderr).toContain("sudo apt-get install redis-server");
  expect(status).toBe(0);
});

test("a caller that does not gets the error, which tells that containers were tried as well", () => {
  const { status, stdout } = onBareMachine("real");
  expect(stdout).toMatch(/^no Redis server can be had on this machine/);
  expect(stdout).toMatch(
    /\nNor can it run in a container: no Docker engine answers \(nothing listens at DOCKER_HOST=.*ENOENT.*\): start one/,
  );
  expect(status).toBe(1);
});

test("a provider that is asked for by name is used, or the error is thrown", () => {
  const { status, stdout } = onBareMachine("any", { PALISADE_TEST_PROVIDER: "local" });
  expect(stdout).toMatch(/^no Redis server can be had on this machine/);
  expect(status).toBe(1);
});
