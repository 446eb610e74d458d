// What is true of servers in containers only. vitest.config.ts runs these files when
// PALISADE_TEST_PROVIDER=docker.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { hostname, networkInterfaces } from "node:os";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";
import { GenericContainer } from "testcontainers";
import { expect, test } from "vitest";
import { composeImage, dockerEngine, HOST_LABEL, OWNER_LABEL } from "../../../src/docker/engine.js";
import { returnPort, takePort } from "../../../src/process/port-block.js";
import { PostgresServer } from "../../../src/servers/postgres-server.js";
import { RedisFleet } from "../../../src/servers/redis-fleet.js";
import type { RedisNode } from "../../../src/servers/redis-node.js";

const startFleet = (nodes: number): Promise<RedisFleet> => RedisFleet.start({ nodes, provider: "docker" });

const programOf = (name: string): string => fileURLToPath(new URL(`../../../.build/test/real/${name}.program.js`, import.meta.url));

interface Listed {
  readonly id: string;
  readonly volumes: readonly string[];
}

/** The shared servers are another process's, and files take turns: these are this file's. */
async function containersOf(pid: number): Promise<Listed[]> {
  const { container } = await dockerEngine();
  const listed = await container.dockerode.listContainers({ all: true, filters: { label: [`${HOST_LABEL}=${hostname()}`] } });
  const owned = listed.filter(({ Labels }) => Labels[OWNER_LABEL]?.startsWith(`${pid}.`));
  return owned.map(({ Id, Mounts }) => ({
    id: Id,
    volumes: Mounts.flatMap(({ Type, Name }) => (Type === "volume" && Name ? [Name] : [])),
  }));
}

async function owner(mode: "idle" | "stop"): Promise<ChildProcess & { readonly pid: number }> {
  const child = spawn(process.execPath, [programOf("docker/docker-owner"), mode], { stdio: ["ignore", "pipe", "inherit"] });
  await once(createInterface(child.stdout), "line");
  return child as unknown as ChildProcess & { readonly pid: number };
}

test("ports on which a stranger's servers answer are passed over", async () => {
  // Ports are given out in order until a block is used up, and this is the first test here: a node
  // takes two, for its server and its proxy.
  const port = await takePort();
  const image = await composeImage("redis");
  const strangers = await Promise.all(
    [port + 1, port + 4].map((host) => new GenericContainer(image).withExposedPorts({ container: 6379, host }).start()),
  );
  await using fleet = await startFleet(1);
  expect(new URL(fleet.nodes[0]?.directUrl ?? "").port).toBe(String(port + 2));
  await using cluster = await PostgresServer.start({ provider: "docker" });
  expect(cluster.port).toBe(port + 5);
  await Promise.all(strangers.map((stranger) => stranger.stop()));
  returnPort(port);
});

test("the image is the one of the compose file, and the line that says so names the engine", async () => {
  await using fleet = await startFleet(1);
  expect(fleet.description).toBe(`1 × ${await composeImage("redis")} (containers of ${await engineName()}), appendfsync always`);
});

async function engineName(): Promise<string> {
  const { operatingSystem, serverVersion } = (await dockerEngine()).info.containerRuntime;
  return `${operatingSystem}, engine ${serverVersion}`;
}

test("stopped, servers leave neither containers nor volumes", async () => {
  const [fleet, postgres] = await Promise.all([startFleet(3), PostgresServer.start({ provider: "docker" })]);
  const containers = await containersOf(process.pid);
  expect(containers).toHaveLength(4);
  await Promise.all([fleet.nodes[0]?.kill(), fleet.nodes[1]?.pause(), postgres.crash()]);
  await Promise.all([fleet.stop(), postgres.stop()]);
  await fleet.stop();
  expect(await containersOf(process.pid)).toEqual([]);
  const { Volumes } = await (await dockerEngine()).container.dockerode.listVolumes();
  const left = Volumes.map(({ Name }) => Name);
  expect(containers.flatMap(({ volumes }) => volumes).filter((name) => left.includes(name))).toEqual([]);
});

test("a node that has forgotten has a new container, and the old one is gone", async () => {
  await using fleet = await startFleet(1);
  const [before] = await containersOf(process.pid);
  await fleet.nodes[0]?.restart({ forget: true });
  const after = await containersOf(process.pid);
  expect(after).toHaveLength(1);
  expect(after[0]?.id).not.toBe(before?.id);
});

test("a server that does not start is an error at once that quotes its log, and leaves nothing", async () => {
  const starting = RedisFleet.start({ nodes: 2, provider: "docker", config: { "no-such-directive": "yes" } });
  await expect(starting).rejects.toThrow(/n1 did not start on port \d+: n1 exited with 1; its last lines:\n[\s\S]*no-such-directive/);
  const postgres = PostgresServer.start({ provider: "docker", settings: { no_such_setting: "1" } });
  await expect(postgres).rejects.toThrow(/postgres did not start on port \d+: postgres exited with 1; [\s\S]*no_such_setting/);
  expect(await containersOf(process.pid)).toEqual([]);
});

test("a server is to be reached at its own address only", async () => {
  await using fleet = await startFleet(1);
  const { hostname, port } = new URL(fleet.nodes[0]?.directUrl ?? "");
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses?.filter(({ family }) => family === "IPv4") ?? []);
  const others = all.map(({ address }) => address).filter((address) => address !== hostname);
  expect(await Promise.all(others.map((address) => knock(address, Number(port))))).toEqual(others.map(() => "ECONNREFUSED"));
  expect(await knock(hostname, Number(port))).toBe("connected");
});

function knock(host: string, port: number): Promise<unknown> {
  return new Promise((resolve) => {
    const socket = connect({ host, port }, () => {
      socket.destroy();
      resolve("connected");
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
  // No folder on PATH: no server, no apt-get. Another cache: no earlier run has fetched a server.
  const env = { ...rest, PATH: "/nowhere", PALISADE_CACHE_DIR: "/nowhere" };
  const { stdout, status } = spawnSync(process.execPath, [programOf("redis-fallback"), "real"], { env, encoding: "utf8" });
  expect(stdout).toMatch(
    /^2 × redis:\S+ \(containers of .*\), because no Redis server can be had on this machine, appendfsync always PONG\n$/,
  );
  expect(status).toBe(0);
});
