// What a run does when one of its processes ends: it fails at once, with the last words of the
// process, unless the run itself has ended it.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Closers } from "@palisade/testkit";
import { afterEach, expect, test } from "vitest";
import { run, Workers } from "../../src/runs/workers.js";
import { Gateway } from "../../src/servers/gateway.js";

const closers = new Closers();
afterEach(() => closers[Symbol.asyncDispose]());

/** Nothing listens on port 1. */
const NOTHING = "127.0.0.1:1";
const PATIENCE_MS = 30_000;
const wrong = { DATABASE_URL: `postgres://nobody@${NOTHING}/none`, PALISADE_REDIS_URLS: `redis://${NOTHING}`, PALISADE_VERIFY: "maybe" };

test("a gateway that ends before there are faults fails the run with its last words", { timeout: PATIENCE_MS }, async () => {
  const starting = closers.use(new Gateway("the gateway", wrong)).start();
  await expect(starting).rejects.toThrow(/the gateway exited with \d+; its last lines:\n.*PALISADE_VERIFY/s);
});

test("a gateway that ends under faults is started again until the signal, and no longer", { timeout: PATIENCE_MS }, async () => {
  const begunAt = performance.now();
  const starting = closers.use(new Gateway("the gateway", wrong)).restart(AbortSignal.timeout(1_000));
  await expect(starting).rejects.toThrow(/did not come up: /);
  expect(performance.now() - begunAt).toBeGreaterThanOrEqual(999);
});

function workers(): Workers {
  const folder = mkdtempSync(join(tmpdir(), "processes-"));
  closers.use({ [Symbol.asyncDispose]: async () => rmSync(folder, { recursive: true }) });
  const common = { traffic: "intrusion", intruder: "careless", seed: "a", apiKey: "key", reportEveryMs: 100 } as const;
  const places = ["one", "two"].map((name) => ({
    name,
    orders: (startNumber: number) => {
      return { ...common, name, gatewayUrls: [`http://${NOTHING}`], journal: join(folder, `${name}.${startNumber}`) };
    },
  }));
  return closers.use(new Workers(places));
}

test("a worker that ends by a SIGKILL that is not of the run fails the run", { timeout: PATIENCE_MS }, async () => {
  const all = workers();
  const running = run(all, {
    inject: async () => {},
    traffic: async () => {
      process.kill(all.all[0]?.pid as number, "SIGKILL");
      await new Promise<never>(() => {});
    },
    recoveryMs: PATIENCE_MS,
  });
  await expect(running).rejects.toThrow("one was ended by SIGKILL");
});

test("a worker that the run replaces does not", { timeout: PATIENCE_MS }, async () => {
  const all = workers();
  const ran = await run(all, {
    inject: async () => {
      await all.all[0]?.replace();
    },
    traffic: async () => {},
    recoveryMs: PATIENCE_MS,
  });
  expect(ran.isRecovered).toBe(true);
});
