// What is true of servers in containers only; these files belong to the suites when PALISADE_TEST_PROVIDER=docker (vitest.config.ts).
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import { networkInterfaces } from "node:os";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { PostgresServer, RedisFleet, type RedisNode, returnPort, takePort } from "@palisade/testkit";
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { dockerEngine } from "../../../src/docker/engine.js";
import { composeImage } from "../../../src/docker/images.js";

const startFleet = (nodes: number): Promise<RedisFleet> => RedisFleet.start({ nodes, provider: "docker" });

const programOf = (name: string): string => fileURLToPath(new URL(`../../../.build/test/real/${name}.program.js`, import.meta.url));

interface Listed {
  readonly publishedPorts: readonly number[];
  readonly volumes: readonly string[];
}

async function containersOf(pid: number): Promise<Listed[]> {
  const { container } = await dockerEngine();
  const listed = await container.dockerode.listContainers({ all: true, filters: { label: [`palisade.pid=${pid}`] } });
  return listed.map(({ Ports, Mounts }) => ({
    publishedPorts: Ports.flatMap(({ PublicPort }) => PublicPort ?? []),
    volumes: Mounts.flatMap(({ Type, Name }) => (Type === "volume" && Name !== undefined ? [Name] : [])),
  }));
}

async function owner(mode: "idle" | "stop"): Promise<ChildProcess & { readonly pid: number }> {
  const child = spawn(process.execPath, [programOf("docker/docker-owner"), mode], { stdio: ["ignore", "pipe", "inherit"] });
  await once(createInterface(child.stdout), "line");
  return child as unknown as ChildProcess & { readonly pid: number };
}

test("the image is the one of the compose file, and the line that says so names the engine", async () => {
  await using fleet = await startFleet(1);
  expect(fleet.description).toBe(`1 × ${await composeImage("redis")} (containers of ${await engineName()}), appendfsync always`);
});

async function engineName(): Promise<string> {
  const { operatingSystem, serverVersion } = (await dockerEngine()).info.containerRuntime;
  return `${operatingSystem}, engine ${serverVersion}`;
}

test("stopped, a fleet leaves neither containers nor volumes", async () => {
  const others = await containersOf(process.pid);
  const fleet = await startFleet(3);
  const ports = fleet.nodes.map((node) => Number(new URL(node.directUrl).port));
  const mine = (await containersOf(process.pid)).filter(({ publishedPorts }) => publishedPorts.some((port) => ports.includes(port)));
  expect(mine).toHaveLength(3);
  await fleet.nodes[0]?.kill();
  await fleet.nodes[1]?.pause();
  await fleet.stop();
  await fleet.stop();
  expect(await containersOf(process.pid)).toHaveLength(others.length);
  const { Volumes } = await (await dockerEngine()).container.dockerode.listVolumes();
  const left = Volumes.map(({ Name }) => Name);
  expect(mine.flatMap(({ volumes }) => volumes).filter((name) => left.includes(name))).toEqual([]);
});

test("a node that has forgotten has a new container, and the old one is gone", async () => {
  const others = await containersOf(process.pid);
  await using fleet = await startFleet(1);
  await fleet.nodes[0]?.restart({ forget: true });
  expect(await containersOf(process.pid)).toHaveLength(others.length + 1);
});

test("a server that does not start is an error at once that quotes its log, and leaves nothing", async () => {
  const others = await containersOf(process.pid);
  const starting = RedisFleet.start({ nodes: 2, provider: "docker", config: { "no-such-directive": "yes" } });
  await expect(starting).rejects.toThrow(/n1 did not start on port \d+: n1 exited with 1; its last lines:\n[\s\S]*no-such-directive/);
  const postgres = PostgresServer.start({ provider: "docker", settings: { no_such_setting: "1" } });
  await expect(postgres).rejects.toThrow(/postgres did not start on port \d+: postgres exited with 1; [\s\S]*no_such_setting/);
  expect(await containersOf(process.pid)).toHaveLength(others.length);
});

test("a port that somebody else has taken is passed over", async () => {
  const port = await takePort();
  const stranger = createServer().listen(port + 1, "127.0.0.1");
  await once(stranger, "listening");
  await using fleet = await startFleet(1);
  expect(fleet.nodes[0]?.directUrl).toBe(`redis://127.0.0.1:${port + 2}`);
  stranger.close();
  returnPort(port);
});

test("a server is to be reached from this machine only", async () => {
  await using fleet = await startFleet(1);
  const { port } = new URL(fleet.nodes[0]?.directUrl ?? "");
  const outward = Object.values(networkInterfaces()).flatMap(
    (all) => all?.filter(({ family, internal }) => family === "IPv4" && !internal) ?? [],
  );
  expect(await Promise.all(outward.map(({ address }) => knock(address, Number(port))))).toEqual(outward.map(() => "ECONNREFUSED"));
  expect(await knock("127.0.0.1", Number(port))).toBe("somebody is there");
});

function knock(host: string, port: number): Promise<unknown> {
  return new Promise((resolve) => {
    const socket = connect({ host, port }, () => {
      socket.destroy();
      resolve("somebody is there");
    });
    socket.on("error", (cause: NodeJS.ErrnoException) => resolve(cause.code));
  });
}

test("killed while it was paused, a node has done nothing that it was asked meanwhile", async () => {
  await using fleet = await startFleet(1);
  const node = fleet.nodes[0] as RedisNode;
  const client = new Redis(node.url, { retryStrategy: null });
  client.on("error", () => {}); // The kill cuts it.
  await client.ping();
  await node.pause();
  const before = node.proxy.traffic.requests.passedBytes;
  const answer = client.set("k", "asked while paused").catch(() => "cut");
  await node.proxy.until(({ requests }) => requests.passedBytes > before);
  await node.kill();
  expect(await answer).toBe("cut");
  await node.restart();
  expect(await node.cli("GET", "k")).toBeNull();
});

test("what a killed program leaves behind goes when the next one starts", async () => {
  const killed = await owner("idle");
  expect(await containersOf(killed.pid)).toHaveLength(2);
  killed.kill("SIGKILL");
  await once(killed, "exit");
  const next = await owner("stop");
  expect(await containersOf(killed.pid)).toEqual([]);
  next.kill("SIGTERM");
  expect(await once(next, "exit")).toEqual([0, null]);
  expect(await containersOf(next.pid)).toEqual([]);
});

test("on a machine without a Redis server containers are the only way, and the line says so", async () => {
  const { REDIS_SERVER_BIN: _, PALISADE_TEST_PROVIDER: __, ...rest } = process.env;
  // No folder on PATH: no server, no apt-get; the cache is another one, so that no earlier run has fetched any.
  const env = { ...rest, PATH: "/nowhere", PALISADE_CACHE_DIR: "/nowhere" };
  const { stdout, status } = spawnSync(process.execPath, [programOf("redis-fallback"), "real"], { env, encoding: "utf8" });
  expect(stdout).toMatch(
    /^2 × redis:\S+ \(containers of .*\), because no Redis server can be had on this machine, appendfsync always PONG\n$/,
  );
  expect(status).toBe(0);
});
