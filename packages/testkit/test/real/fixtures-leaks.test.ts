// A file that leaves something behind fails, and is told what; one that cleans up in its hooks
// passes. Proven by a run of vitest over files that leak on purpose.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { basename, dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "@palisade/testkit/vitest";

interface FileResult {
  readonly name: string;
  readonly status: "passed" | "failed";
  readonly message: string;
  readonly assertionResults: readonly { readonly status: string }[];
}

const results = new Map<string, FileResult>();
let run: ChildProcess | undefined;

/** Runs vitest over the leaky files to its end. */
async function runLeaky(extra: Readonly<Record<string, string>> = {}): Promise<{ output: string; complaints: string }> {
  const vitest = join(dirname(createRequire(import.meta.url).resolve("vitest/package.json")), "vitest.mjs");
  const config = fileURLToPath(new URL("leaky/vitest.config.ts", import.meta.url));
  // It is not one of our workers.
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("VITEST"));
  const env = { ...Object.fromEntries(inherited), ...extra };
  const started = spawn(process.execPath, [vitest, "run", "--config", config], { env, stdio: ["ignore", "pipe", "pipe"] });
  run = started;
  const [output, complaints] = await Promise.all([text(started.stdout), text(started.stderr), once(started, "exit")]);
  return { output, complaints };
}

beforeAll(async () => {
  const { output } = await runLeaky();
  const report = JSON.parse(output.slice(output.indexOf('{"num'))) as { testResults: FileResult[] };
  for (const result of report.testResults) results.set(basename(result.name, ".leaky.ts"), result);
}, 180_000); // It has servers and time limits of its own.

afterAll(() => {
  run?.kill(); // It may have outlasted its limit.
});

function messageOf(file: string): string {
  const result = results.get(file);
  expect(result?.status).toBe("failed");
  // Its tests are fine; the file is not.
  expect(result?.assertionResults.map((test) => test.status)).not.toContain("failed");
  return result?.message ?? "";
}

test("a forgotten child process fails its file, which names the command", () => {
  expect(messageOf("process")).toMatch(/leaves behind:\n +process \d+: .*sleep 600/);
});

test("a forgotten connection to the shared fleet fails its file, which says where it was opened", () => {
  expect(messageOf("process")).toMatch(/connection to port \d+, opened\n.*process\.leaky\.ts:11/);
});

test("a forgotten session in the file's database fails the file, which names the session", () => {
  expect(messageOf("session")).toMatch(/connections to its database open:\n.*forgetful/);
});

test("a file that cleans up in a hook passes", () => {
  expect(results.get("tidy")?.status).toBe("passed");
});

test("a run whose servers cannot start says why and ends, because the servers that did start are stopped", async () => {
  const { output, complaints } = await runLeaky({ PALISADE_TEST_PROVIDER: "local", REDIS_SERVER_BIN: join(import.meta.dirname, "none") });
  expect(`${output}${complaints}`).toContain("REDIS_SERVER_BIN names ");
  expect(`${output}${complaints}`).not.toMatch(/timed out|hanging-process/);
}, 180_000);
