// What a run does when one of its processes ends: it fails at once, with the last words of the
// process, unless the run itself has ended it.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { Closers, run } from "../../src/harness/run.js";
import { Workers } from "../../src/harness/workers.js";
import { Gateway, newKey } from "../../src/servers/gateway.js";

const closers = new Closers();
afterEach(() => closers[Symbol.asyncDispose]());

/** Nothing listens on port 1. */
const NOTHING = "127.0.0.1:1";
const PATIENCE_MS = 30_000;

function gateway(env: Record<string, string>, logLevel: "info" | "error" = "info"): Gateway {
  return closers.use(new Gateway({ name: "the gateway", env, logLevel }));
}

const wrong = { DATABASE_URL: `postgres://nobody@${NOTHING}/none`, PALISADE_REDIS_URLS: `redis://${NOTHING}`, PALISADE_VERIFY: "maybe" };

describe("a gateway that ends", { timeout: PATIENCE_MS }, () => {
  for (const logLevel of ["info", "error"] as const)
    test(`before there are faults fails the run with its last words, also when it logs at ${logLevel}`, async () => {
      const starting = gateway(wrong, logLevel).start();
      await expect(starting).rejects.toThrow(/did not come up: the gateway exited with \d+; its last lines:\n.*PALISADE_VERIFY/s);
    });

  test("under faults is started again until the signal, and no longer", async () => {
    const begunAt = performance.now();
    const starting = gateway(wrong).restart(AbortSignal.timeout(1_000));
    await expect(starting).rejects.toThrow(/did not come up: /);
    expect(performance.now() - begunAt).toBeGreaterThanOrEqual(999);
  });
});

describe("a worker that ends", { timeout: PATIENCE_MS }, () => {
  function workers(): Workers {
    const folder = mkdtempSync(join(tmpdir(), "processes-"));
    closers.use({ [Symbol.asyncDispose]: async () => rmSync(folder, { recursive: true }) });
    const { secret: apiKey } = newKey("one");
    const places = ["one", "two"].map((name) => ({
      name,
      orders: (startNumber: number) => ({
        traffic: "intrusion" as const,
        name,
        intruder: "careless" as const,
        seed: "a",
        apiKey,
        reportEveryMs: 100,
        gatewayUrls: [`http://${NOTHING}`],
        journal: join(folder, `${name}.${startNumber}`),
      }),
    }));
    return closers.use(new Workers(places));
  }

  test("by a SIGKILL that is not of the run fails the run", async () => {
    const all = workers();
    const running = run({
      start: async () => ({ workers: all }),
      inject: async () => {},
      traffic: async () => {
        process.kill(all.pids.one as number, "SIGKILL");
        await new Promise<never>(() => {});
      },
      recoveryMs: PATIENCE_MS,
    });
    await expect(running).rejects.toThrow("one was ended by SIGKILL");
  });

  test("because the run replaces it does not", async () => {
    const all = workers();
    const ran = await run({
      start: async () => ({ workers: all }),
      inject: async () => {
        await all.all[0]?.replace();
      },
      traffic: () => expect.poll(() => all.all[0]?.has("ready"), { timeout: PATIENCE_MS }).toBe(true),
      recoveryMs: PATIENCE_MS,
    });
    expect(ran.isRecovered).toBe(true);
  });
});
