// The simulated server and a real one take the same steps, drawn by chance, and must give the same
// answers and store the same data. A failure names the seed and the shortest sequence in which they
// differ.

import type { RedisNode } from "@palisade/testkit";
import { describe, expect, test } from "@palisade/testkit/vitest";
import fc from "fast-check";
import { Redis } from "ioredis";
import { type Command, commands } from "../simulation/commands.js";
import { ComparedServer, type Server, SimulatedServer, type Step, type StoredKey, sequences, sorted } from "../simulation/conformance.js";
import type { ServerSettings } from "../simulation/sim-server.js";
import { controls, edited, type Rules } from "../simulation/world/rules.js";

/** A real server as one of the two that are compared with each other. */
class RealServer implements Server {
  readonly #node: RedisNode;
  #client: Redis;
  #listener: Redis | undefined;
  #heard: string[] = [];

  constructor(node: RedisNode) {
    this.#node = node;
    this.#client = new Redis(node.directUrl);
  }

  eval = (source: string, keys: readonly string[], args: readonly string[]): Promise<unknown> =>
    this.#client.eval(source, keys.length, ...keys, ...args);

  evalsha = (sha: string, keyCount: number, words: readonly string[]): Promise<unknown> => this.#client.evalsha(sha, keyCount, ...words);

  wait = (ms: number): Promise<void> => this.#node.shiftClock(ms);

  async restart(memory: "kept" | "forgotten"): Promise<void> {
    this.close();
    this.#listener = undefined;
    await this.#node.restart({ forget: memory === "forgotten" });
    this.#client = new Redis(this.#node.directUrl);
  }

  async flush(): Promise<void> {
    await this.#client.flushall();
  }

  async flushScripts(): Promise<void> {
    await this.#client.script("FLUSH");
  }

  /** As it was at the beginning. */
  async clear(): Promise<void> {
    // After a mere disconnect Redis may count a subscription for a moment more.
    await this.#listener?.unsubscribe();
    this.#listener?.disconnect();
    this.#listener = undefined;
    this.#heard = [];
    await Promise.all([this.flush(), this.flushScripts()]);
  }

  async listen(channels: readonly string[]): Promise<void> {
    if (this.#listener === undefined) {
      this.#listener = new Redis(this.#node.directUrl);
      this.#listener.on("message", (channel, text) => this.#heard.push(`${channel}: ${text}`));
    }
    await this.#listener.subscribe(...channels);
  }

  async heard(): Promise<readonly string[]> {
    // Behind everything that was published before.
    await this.#listener?.ping();
    const heard = this.#heard;
    this.#heard = [];
    return heard;
  }

  async stored(): Promise<readonly StoredKey[]> {
    const keys = (await this.#client.keys("*")).sort();
    return Promise.all(
      keys.map(async (key): Promise<StoredKey> => {
        const [leftMs, kind] = await Promise.all([this.#client.pttl(key), this.#client.type(key)]);
        return {
          key,
          value: await this.#valueOf(key, kind),
          leftMs,
        };
      }),
    );
  }

  async #valueOf(key: string, kind: string): Promise<StoredKey["value"]> {
    if (kind === "hash") return sorted(await this.#client.hgetall(key));
    if (kind !== "zset") return (await this.#client.get(key)) ?? "";
    const members = await this.#client.zrange(key, "0", "-1");
    const scored = await Promise.all(members.map(async (member) => [member, (await this.#client.zscore(key, member)) ?? ""] as const));
    return sorted(Object.fromEntries(scored));
  }

  close(): void {
    this.#client.disconnect();
    this.#listener?.disconnect();
  }
}

type Otherwise = Pick<ServerSettings, "edit" | "commands">;

/** The first step after which they differ. */
async function difference(server: Server, otherwise: Otherwise, steps: readonly Step[]): Promise<object | undefined> {
  const [ours, theirs] = [new ComparedServer(new SimulatedServer(otherwise)), new ComparedServer(server)];
  for (const step of steps) {
    const [simulated, actual] = [await ours.take(step), await theirs.take(step)];
    if (simulated !== actual) return { step, simulated, actual };
  }
  return undefined;
}

interface Search {
  readonly runs: number;
  /**
   * fast-check's own limit of time would leave a run alone in the middle, and with it the server
   * that it is about to start.
   */
  readonly withinMs?: number;
  /** Which sequences the real server takes; all by default. */
  readonly deserves?: (steps: readonly Step[]) => Promise<boolean>;
}

async function findDifference(
  node: RedisNode,
  otherwise: Otherwise,
  { runs, withinMs = Number.POSITIVE_INFINITY, deserves }: Search,
): Promise<fc.RunDetails<[readonly Step[]]>> {
  const real = new RealServer(node);
  const endsAt = performance.now() + withinMs;
  let compared = 0;
  try {
    const property = fc.asyncProperty(sequences, async (steps) => {
      // Out of time: what is left counts as alike, so that no more of it is looked at.
      if (compared > 0 && performance.now() > endsAt) return;
      if (deserves !== undefined && !(await deserves(steps))) return;
      compared++;
      await real.clear();
      const found = await difference(real, otherwise, steps);
      if (found !== undefined) throw new Error(JSON.stringify(found, null, 2));
    });
    return await fc.check(property, { numRuns: runs, endOnFailure: deserves !== undefined });
  } finally {
    real.close();
  }
}

/**
 * Whether the real server finds this one out. It is slow, so it takes only the sequences that a
 * simulated server as it should be answers in another way; the verdict is the real server's.
 */
async function isFoundOut(node: RedisNode, otherwise: Otherwise): Promise<boolean> {
  const deserves = async (steps: readonly Step[]) => (await difference(new SimulatedServer({}), otherwise, steps)) !== undefined;
  return (await findDifference(node, otherwise, { runs: 1_000, deserves })).failed;
}

describe("the simulated server", () => {
  test("answers and stores what a real one answers and stores", async ({ fleet }) => {
    const [node] = (await fleet({ nodes: 1 })).nodes;
    const details = await findDifference(node as RedisNode, {}, { runs: 100, withinMs: 4_000 });
    expect(details.failed, `${fc.defaultReportMessage(details)}\n${String(details.errorInstance)}`).toBe(false);
  });

  test("counts as a real one where a foreign counter is higher than any token", async ({ fleet }) => {
    const [node] = (await fleet({ nodes: 1 })).nodes;
    const member = ["<present>", "nonce1", "8", "epoch1", "id1", "fleet", "1", "1-g", "members", ""];
    const steps: readonly Step[] = [
      { kind: "greet" },
      { kind: "node script", name: "openAdmission", args: ["nonce1", "id1", "4000000000007", "10000", "0", ""] },
      { kind: "node script", name: "admit", args: member },
      { kind: "lua", source: "return redis.call(unpack(ARGV))", args: ["SET", "{conformance}:token:a", "9999999999999999"] },
      { kind: "request", name: "grant", resources: ["a"], args: ["90000", "18", "three|label of three"] },
    ];
    const real = new RealServer(node as RedisNode);
    try {
      await real.clear();
      expect(await difference(real, {}, steps)).toBeUndefined();
    } finally {
      real.close();
    }
  });

  test.for<readonly [string, Rules | undefined]>([
    ["claim", controls["claims over a holder"]],
    ["seal", controls["seal without ownership"]],
    ["release", controls["release whoever holds it"]],
    ["extend", edited("extend", { find: "if missing then", replace: "if false then" })],
    ["heal", controls["heal over another's key"]],
    ["readFloor", controls["epochs that nobody moves"]],
    ["promise", edited("promise", { find: "promised >= tonumber(ARGV[2])", replace: "promised > tonumber(ARGV[2])" })],
    ["accept", edited("accept", { find: " or record[3] ~= ARGV[2] then", replace: " then" })],
    ["enter", edited("enter", { find: "number < tonumber(ARGV[6])", replace: "number > tonumber(ARGV[6])" })],
    ["mark", edited("mark", { find: "> stored then", replace: "~= stored then" })],
  ])("is found out when it answers %s in another way", async ([, rules], { fleet }) => {
    const [node] = (await fleet({ nodes: 1 })).nodes;
    const otherwise = { edit: rules?.edit ?? ((_: unknown, text: string) => text) };
    expect(await isFoundOut(node as RedisNode, otherwise)).toBe(true);
  });

  const set = commands.SET as Command;
  test.for<readonly [string, Command]>([
    [
      "SET",
      (execution, words) =>
        set(
          execution,
          words.filter((word) => word !== "NX"),
        ),
    ],
    ["GET", ({ memory, nowMs }, [key = ""]) => memory.get(key, nowMs) ?? ""],
    ["INCR", ({ memory, nowMs }, [key = ""]) => Number(memory.get(key, nowMs) ?? "0") + 1],
    ["PEXPIRE", ({ memory, nowMs }, [key = ""]) => (memory.leftMs(key, nowMs) === -2 ? 0 : 1)],
    ["PTTL", ({ memory, nowMs }, [key = ""]) => Math.max(-1, memory.leftMs(key, nowMs))],
    ["EXISTS", ({ memory, nowMs }, keys) => new Set(keys.filter((key) => memory.leftMs(key, nowMs) !== -2)).size],
    ["HSET", ({ memory, nowMs }, [key = "", field = "", value = ""]) => memory.madeHash(key, nowMs).set(field, value).size],
    ["PUBLISH", () => 0],
  ])("is found out when it executes %s in another way", async ([name, otherwise], { fleet }) => {
    const [node] = (await fleet({ nodes: 1 })).nodes;
    expect(await isFoundOut(node as RedisNode, { commands: { ...commands, [name]: otherwise } })).toBe(true);
  });
});
