// A fleet is so many processes that share nothing, quickly there and gone without a trace. One node
// of it dies, forgets, stands still, or shows another time; and a client sees what the fault says.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { livingChildren, scratchFolder } from "../../src/process/orphans.js";
import { RedisFleet, type RedisNode } from "../../src/redis/fleet.js";
import { localRedis, type RedisProvider } from "../../src/redis/server.js";

const knock = (url: string): Promise<unknown> =>
  new Promise((resolve) => {
    const socket = connect(Number(new URL(url).port), "127.0.0.1", () => resolve("a server is there"));
    socket.on("error", (cause: NodeJS.ErrnoException) => resolve(cause.code));
  });

describe("a fleet", () => {
  test("that is stopped leaves no process and no folder", async () => {
    const before = livingChildren().length;
    const fleet = await RedisFleet.start({ nodes: 3, provider: "local" });
    expect(livingChildren().length).toBe(before + 3);
    const folders = await Promise.all(fleet.nodes.map(async (node) => ((await node.cli("CONFIG", "GET", "dir")) as string[])[1] ?? ""));
    expect(folders.every(existsSync)).toBe(true);
    const urls = [...fleet.urls, ...(await fleet.anotherWay()).urls, fleet.nodes[2]?.directUrl ?? ""];
    await fleet.nodes[0]?.kill();
    await fleet.nodes[1]?.pause();
    await fleet.stop();
    await fleet.stop();
    expect(livingChildren().length).toBe(before);
    expect(folders.some(existsSync)).toBe(false);
    expect(await Promise.all(urls.map(knock))).toEqual(urls.map(() => "ECONNREFUSED"));
  });

  test("of which one server cannot be had, or does not start, is an error that quotes it, and the others are stopped", async () => {
    const before = livingChildren().length;
    const unlucky: RedisProvider = {
      ...localRedis,
      start: (spec) => localRedis.start(spec.name === "n2" ? { ...spec, config: { "no-such-directive": "yes" } } : spec),
    };
    await expect(RedisFleet.start({ nodes: 3, provider: unlucky })).rejects.toThrow(
      /^n2 did not start on port \d+: [\s\S]*no-such-directive/,
    );
    expect(livingChildren().length).toBe(before);
  });

  test("may be Valkey in WebAssembly, which forgets when it restarts and says so", async () => {
    await using fleet = await RedisFleet.start({ nodes: 1, provider: "wasm" });
    const node = fleet.nodes[0] as RedisNode;
    await node.cli("SET", "k", "v");
    // The quickest answer is not at the pace of the server's timer, which ticks ten times a second.
    const client = new Redis(node.url);
    const tookMs: number[] = [];
    for (let count = 0; count < 10; count += 1) {
      const askedAt = performance.now();
      await client.ping();
      tookMs.push(performance.now() - askedAt);
    }
    client.disconnect();
    expect(Math.min(...tookMs.slice(1))).toBeLessThan(50);
    await node.restart();
    expect(await node.cli("GET", "k")).toBeNull();
    expect(fleet.description).toMatch(/^1 × Valkey in WebAssembly .*a restarted node has forgotten everything/);
  });
});

describe("on a machine with nothing", () => {
  const program = fileURLToPath(new URL("../../.build/test/real/redis-fallback.program.js", import.meta.url));

  function onBareMachine(accepts: "any" | "real", wishes: Readonly<Record<string, string>> = {}) {
    // An empty folder for PATH: no server, no apt-get; and no engine for containers.
    const empty = scratchFolder("empty");
    const env = { PATH: empty, PALISADE_CACHE_DIR: empty, HOME: empty, DOCKER_HOST: `unix://${empty}/docker.sock`, ...wishes };
    return spawnSync(process.execPath, [program, accepts], { env, encoding: "utf8", timeout: 60_000 });
  }

  test("a caller that accepts any server gets Valkey in WebAssembly, with a notice that says why and what would help", () => {
    const { status, stdout, stderr } = onBareMachine("any");
    expect(stdout).toMatch(/^2 × Valkey in WebAssembly .* PONG\n$/);
    expect(stderr).toMatch(
      /^Redis does not run in containers: no Docker engine answers \([\s\S]*no Redis server can be had on this machine/,
    );
    expect(stderr).toContain("sudo apt-get install redis-server");
    expect(status).toBe(0);
  });

  test("others get the error, which tells that containers were tried as well; a provider asked for by name is used or its error told", () => {
    const { status, stdout } = onBareMachine("real");
    expect(stdout).toMatch(
      /^no Redis server can be had on this machine[\s\S]*\nNor can it run in a container: no Docker engine answers \(.*ENOENT/,
    );
    expect(status).toBe(1);
    const named = onBareMachine("any", { PALISADE_TEST_PROVIDER: "local" });
    expect(named.stdout).toMatch(/^no Redis server can be had on this machine/);
    expect(named.status).toBe(1);
  });
});

describe("a node", () => {
  let fleet: RedisFleet;
  let node: RedisNode;

  beforeAll(async () => {
    fleet = await RedisFleet.start({ nodes: 1 });
    node = fleet.nodes[0] as RedisNode;
  });

  afterEach(async () => {
    await node.heal();
    await node.cli("PING").catch(() => node.restart());
  });

  afterAll(async () => {
    await fleet.stop();
  });

  /** Without retries, as the lock connects; in a partition its QUIT gets no answer. */
  async function client(url = node.url): Promise<Redis> {
    const once = { retryStrategy: null, maxRetriesPerRequest: 0, disconnectTimeout: 20 };
    const redis = new Redis(url, { ...once, lazyConnect: true, enableOfflineQueue: false });
    redis.on("error", () => {});
    onTestFinished(() => redis.disconnect());
    await redis.connect();
    return redis;
  }

  const silence = (answer: Promise<unknown>) => Promise.race([answer, delay(50, "no answer")]);

  test("restarted, remembers every acknowledged write, under the same address, in a new life", async () => {
    const life = async (): Promise<unknown> => /run_id:\w+/.exec(String(await node.cli("INFO", "server")))?.[0];
    const before = { url: node.url, directUrl: node.directUrl, life: await life() };
    const redis = await client();
    for (let index = 0; index < 50; index += 1) await redis.set(`acknowledged:${index}`, index);
    await node.kill();
    await expect(node.cli("PING")).rejects.toThrow(/n1 did not answer PING: connect ECONNREFUSED/);
    await node.restart();
    expect(await node.cli("EXISTS", ...Array.from({ length: 50 }, (_, index) => `acknowledged:${index}`))).toBe(50);
    expect({ url: node.url, directUrl: node.directUrl }).toEqual({ url: before.url, directUrl: before.directUrl });
    expect(await life()).not.toBe(before.life);
  });

  test("restarted with forget, has lost all it knew", async () => {
    await node.cli("SET", "k", "v");
    await node.restart({ forget: true });
    expect(await node.cli("DBSIZE")).toBe(0);
    await node.cli("SET", "k", "w");
    await node.restart();
    expect(await node.cli("GET", "k")).toBe("w");
  });

  test("paused, stands still with its connections open; resumed, answers what was asked meanwhile", async () => {
    const redis = await client();
    await node.pause();
    const set = redis.set("k", "asked while paused");
    expect([await silence(set), redis.status]).toEqual(["no answer", "ready"]);
    await node.resume();
    expect(await set).toBe("OK");
  });

  test("is partitioned still when its server has restarted; another way to it has faults of its own", async () => {
    const way = await node.anotherWay();
    const fine = `redis://${way.host}:${way.port}`;
    await node.partition();
    await node.restart();
    const connecting = client().catch((cause: Error) => cause.message);
    expect(await silence(connecting)).toBe("no answer");
    expect(await (await client(fine)).ping()).toBe("PONG");
    await node.heal();
    expect(await connecting).toBe("Connection is closed.");
    expect(await (await client()).ping()).toBe("PONG");
  });
});

describe("the clock of a node", () => {
  let fleet: RedisFleet;

  beforeAll(async () => {
    fleet = await RedisFleet.start({ nodes: 2, provider: "local" });
  });

  afterAll(async () => {
    await fleet.stop();
  });

  /** The server is asked between two looks at our clock, so it is ahead by something in between. */
  async function expectAhead(node: RedisNode, expectedMs: number): Promise<void> {
    const before = Date.now();
    const [seconds, microseconds] = (await node.cli("TIME")) as [string, string];
    const shown = Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000);
    expect(shown - Date.now() - 1).toBeLessThanOrEqual(expectedMs);
    expect(shown - before + 1).toBeGreaterThanOrEqual(expectedMs);
  }

  test("jumps by as much as asked for, and no other; that adds up, also while it is paused or killed", async () => {
    const [jumping, steady] = fleet.nodes as [RedisNode, RedisNode];
    await jumping.shiftClock(3_600_000);
    await jumping.shiftClock(-7_200_500);
    await expectAhead(jumping, -3_600_500);
    await expectAhead(steady, 0);
    // Wherever in a second it begins.
    for (let count = 1; count <= 15; count += 1) {
      await jumping.shiftClock(-137);
      await expectAhead(jumping, -3_600_500 - 137 * count);
    }
    await jumping.pause();
    await jumping.shiftClock(2_055);
    await jumping.resume();
    await expectAhead(jumping, -3_600_500);
    await jumping.kill();
    await jumping.shiftClock(5_000);
    await jumping.restart();
    await expectAhead(jumping, -3_595_500);
  });

  test("ends the lives of keys at once when it jumps forwards, and lengthens them when it jumps back", async () => {
    const node = fleet.nodes[1] as RedisNode;
    await node.cli("SET", "k", "v", "PX", 60_000);
    await node.shiftClock(-30_000);
    expect(Number(await node.cli("PTTL", "k"))).toBeGreaterThan(80_000);
    await node.shiftClock(100_000);
    expect(await node.cli("GET", "k")).toBeNull();
  });

  test("cannot be moved in a fleet with real clocks, which says how it could", async () => {
    await using real = await RedisFleet.start({ nodes: 1, clock: "real", provider: "local" });
    await expect(real.nodes[0]?.shiftClock(1)).rejects.toThrow(/the clock of n1 is real: start the fleet with clock "shiftable"/);
  });
});
