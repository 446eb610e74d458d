// What is true of servers in containers only. vitest.config.ts runs these files when
// PALISADE_TEST_PROVIDER=docker.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { PostgresServer } from "../../../src/postgres/server.js";
import { RedisFleet, type RedisNode } from "../../../src/redis/fleet.js";
import { accepts } from "../../../src/servers/distribution.js";

const startFleet = (nodes: number): Promise<RedisFleet> => RedisFleet.start({ nodes, provider: "docker" });
const portOf = (url: string | undefined): number => Number(new URL(url ?? "").port);

test("the image is the one of the compose file, and stopped nothing is left at the servers' ports", async () => {
  const [fleet, postgres] = await Promise.all([startFleet(3), PostgresServer.start({ provider: "docker" })]);
  expect(fleet.description).toMatch(/^3 × redis:\S+ \(containers of .*, engine .*\), appendfsync always$/);
  const ports = [...fleet.nodes.map(({ directUrl }) => portOf(directUrl)), postgres.port];
  expect(await Promise.all(ports.map(accepts))).toEqual(ports.map(() => true));
  await Promise.all([fleet.nodes[0]?.kill(), fleet.nodes[1]?.pause(), postgres.crash()]);
  await Promise.all([fleet.stop(), postgres.stop()]);
  await fleet.stop();
  expect(await Promise.all(ports.map(accepts))).toEqual(ports.map(() => false));
});

test("a server that does not start is an error that quotes its log", async () => {
  const starting = RedisFleet.start({ nodes: 1, provider: "docker", config: { "no-such-directive": "yes" } });
  await expect(starting).rejects.toThrow(/n1 did not start on port \d+: [\s\S]*no-such-directive/);
  const postgres = PostgresServer.start({ provider: "docker", settings: { no_such_setting: "1" } });
  await expect(postgres).rejects.toThrow(/postgres did not start on port \d+: [\s\S]*no_such_setting/);
});

test("killed while it was paused, a node has done nothing that it was asked meanwhile", async () => {
  await using fleet = await startFleet(1);
  const node = fleet.nodes[0] as RedisNode;
  const client = new Redis(node.url, { retryStrategy: null });
  client.on("error", () => {}); // The kill cuts it.
  await client.ping();
  await node.pause();
  const before = node.traffic.requests.passedBytes;
  const answer = client.set("k", "asked while paused").catch(() => "cut");
  await node.until(({ requests }) => requests.passedBytes > before);
  await node.kill();
  expect(await answer).toBe("cut");
  await node.restart();
  expect(await node.cli("GET", "k")).toBeNull();
});

test("where no provider is named, an engine that answers is taken", () => {
  const { PALISADE_TEST_PROVIDER: _, ...env } = process.env;
  const program = fileURLToPath(new URL("../../../.build/test/real/redis-fallback.program.js", import.meta.url));
  const { stdout, status } = spawnSync(process.execPath, [program, "real"], { env, encoding: "utf8", timeout: 180_000 });
  expect(stdout).toMatch(/^2 × redis:\S+ \(containers of .*\), appendfsync always PONG\n$/);
  expect(status).toBe(0);
});
