// A fleet is so many processes that share nothing, quickly there and gone without a trace.
import { existsSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { startChild } from "../../src/process/child.js";
import { livingChildren } from "../../src/process/orphans.js";
import { returnPort, takePort } from "../../src/process/port-block.js";
import { libraryVariable, programOf } from "../../src/programs/programs.js";
import { RedisFleet, type RedisFleetOptions, type RedisNode } from "../../src/redis/fleet.js";
import { localRedis, type RedisProvider } from "../../src/redis/server.js";

const patient = { timeout: 10_000 };

const folderOf = async (fleet: RedisFleet): Promise<string[]> =>
  Promise.all(fleet.nodes.map(async (node) => ((await node.cli("CONFIG", "GET", "dir")) as string[])[1] ?? ""));

const startLocal = (options: RedisFleetOptions): Promise<RedisFleet> => RedisFleet.start({ ...options, provider: "local" });

const knock = (url: string): Promise<unknown> =>
  new Promise((resolve) => {
    const socket = connect(Number(new URL(url).port), "127.0.0.1", () => resolve("a server is there"));
    socket.on("error", (cause: NodeJS.ErrnoException) => resolve(cause.code));
  });

test("a port on which another program's Redis answers is passed over", async () => {
  const [port, program] = [await takePort(), await programOf("redis")];
  // Ports are given out in order until a block is used up, and this is the first test here: the
  // next one is what the fleet would take for its server.
  const args = ["--port", String(port + 1), "--bind", "127.0.0.1", "--save", ""];
  const intruder = startChild({ command: program.binary, args, env: libraryVariable(program) });
  try {
    await expect.poll(() => intruder.lastLines().join("\n"), patient).toContain("Ready to accept connections");
    await using fleet = await startLocal({ nodes: 1 });
    expect(await fleet.nodes[0]?.cli("INFO", "server")).toContain(`process_id:${fleet.nodes[0]?.pid}\r\n`);
    expect(fleet.nodes[0]?.directUrl).toBe(`redis://127.0.0.1:${port + 2}`);
  } finally {
    await intruder.kill();
    returnPort(port);
  }
});

test("stopped, a fleet leaves no process and no folder", async () => {
  const before = livingChildren().length;
  const fleet = await startLocal({ nodes: 3 });
  expect(livingChildren().length).toBe(before + 3);
  const folders = await folderOf(fleet);
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

test("a server listens on loopback only, and at the same place after a restart", async () => {
  await using fleet = await startLocal({ nodes: 1 });
  const node = fleet.nodes[0] as RedisNode;
  expect(await node.cli("CONFIG", "GET", "bind")).toEqual(["bind", "127.0.0.1"]);
  const before = { directUrl: node.directUrl, pid: node.pid };
  await node.kill();
  expect(node.pid).toBeUndefined();
  await expect(node.cli("PING")).rejects.toThrow(/n1 did not answer PING: connect ECONNREFUSED/);
  await node.restart();
  expect(node.directUrl).toBe(before.directUrl);
  expect(node.pid).not.toBe(before.pid);
});

test("paused is stopped, not a signal on its way", async () => {
  await using fleet = await startLocal({ nodes: 1 });
  const node = fleet.nodes[0] as RedisNode;
  for (let round = 0; round < 20; round += 1) {
    await node.pause();
    const state = process.platform === "linux" ? readFileSync(`/proc/${node.pid}/stat`, "utf8").split(") ")[1]?.[0] : "T";
    expect(state).toBe("T");
    await node.resume();
    expect(await node.cli("PING")).toBe("PONG");
  }
});

test("a server that does not start is an error that quotes it, and leaves nothing", async () => {
  const before = livingChildren().length;
  await expect(startLocal({ nodes: 2, config: { "no-such-directive": "yes" } })).rejects.toThrow(
    /n1 did not start on port \d+: [\s\S]*no-such-directive/,
  );
  expect(livingChildren().length).toBe(before);
});

test("Valkey in WebAssembly is a fleet too, which forgets when it restarts and says so", async () => {
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

test("a fleet of which one server cannot be had is no fleet: the others are stopped", async () => {
  const before = livingChildren().length;
  const unlucky: RedisProvider = {
    ...localRedis,
    start: (spec) => (spec.name === "n2" ? Promise.reject(new Error("n2 broke in transit")) : localRedis.start(spec)),
  };
  await expect(RedisFleet.start({ nodes: 3, provider: unlucky })).rejects.toThrow("n2 broke in transit");
  expect(livingChildren().length).toBe(before);
});

test("an unknown provider is an error that names those there are", async () => {
  await expect(RedisFleet.start({ nodes: 1, provider: "cloud" as "local" })).rejects.toThrow(
    /no Redis provider is called "cloud".*there are: local, docker, wasm/,
  );
});
