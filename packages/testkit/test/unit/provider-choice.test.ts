// Which provider runs the servers when none is named, and what is said when none can.
import { expect, onTestFinished, test, vi } from "vitest";
import type { PostgresProvider } from "../../src/postgres/provider.js";
import type { ProviderName, RedisProvider } from "../../src/redis/provider.js";
import { choosePostgres, chooseRedis } from "../../src/servers/choose-provider.js";

type Description = () => Promise<string>;

const says =
  (line: string): Description =>
  async () =>
    line;
const fails =
  (message: string): Description =>
  async () => {
    throw new Error(message);
  };

const noLocalRedis = fails("no Redis server can be had on this machine. Tried:\n  - PATH\nAny one of these helps: a remedy");
const noLocalPostgres = fails("no Postgres can be had on this machine. Tried: PATH. a remedy");
const noEngine = fails("no Docker engine answers (none): start one");

/** Providers that can only say what they are: no server is started here. */
function redis(local: Description, docker: Description): Record<ProviderName, () => Promise<RedisProvider>> {
  const provider = (name: ProviderName, describe: Description) => async () => ({ name, describe }) as RedisProvider;
  return { local: provider("local", local), docker: provider("docker", docker), wasm: provider("wasm", says("wasm")) };
}

function postgres(local: Description, docker: Description): Record<"local" | "docker", () => Promise<PostgresProvider>> {
  const provider = (describe: Description) => async () => ({ describe }) as PostgresProvider;
  return { local: provider(local), docker: provider(docker) };
}

test("this machine's server is taken where there is one, and no engine is asked", async () => {
  const unasked = fails("an engine was asked");
  const found = await chooseRedis({}, { environment: {}, providers: redis(says("Redis 7 (here)"), unasked) });
  expect([found.provider.name, found.origin]).toEqual(["local", "Redis 7 (here)"]);
  const cluster = await choosePostgres(undefined, { environment: {}, providers: postgres(says("Postgres 17 (here)"), unasked) });
  expect(cluster.origin).toBe("Postgres 17 (here)");
});

test("where this machine has none and an engine answers, containers are taken, and the line says why", async () => {
  const found = await chooseRedis({}, { environment: {}, providers: redis(noLocalRedis, says("redis:7 (containers)")) });
  expect([found.provider.name, found.origin]).toEqual([
    "docker",
    "redis:7 (containers), because no Redis server can be had on this machine",
  ]);
  const cluster = await choosePostgres(undefined, {
    environment: {},
    providers: postgres(noLocalPostgres, says("postgres:17 (containers)")),
  });
  expect(cluster.origin).toBe("postgres:17 (containers), because no Postgres can be had on this machine");
});

test("where neither is to be had, one error names all that was tried and all that helps", async () => {
  await expect(chooseRedis({}, { environment: {}, providers: redis(noLocalRedis, noEngine) })).rejects.toThrow(
    /^no Redis server can be had on this machine\. Tried:\n {2}- PATH\nAny one of these helps: a remedy\nNor can it run in a container: no Docker engine answers \(none\): start one$/,
  );
  await expect(choosePostgres(undefined, { environment: {}, providers: postgres(noLocalPostgres, noEngine) })).rejects.toThrow(
    /^no Postgres can be had on this machine\. Tried: PATH\. a remedy\nNor can it run in a container: no Docker engine answers/,
  );
});

test("a server that was asked for by its path and does not run is an error, not a reason to take containers", async () => {
  const environment = { REDIS_SERVER_BIN: "/gone", PALISADE_POSTGRES_BIN: "/gone" };
  const gone = fails("it does not run");
  await expect(chooseRedis({}, { environment, providers: redis(gone, says("containers")) })).rejects.toThrow(/^it does not run$/);
  await expect(choosePostgres(undefined, { environment, providers: postgres(gone, says("containers")) })).rejects.toThrow(
    /^it does not run$/,
  );
});

test("a provider that was asked for is taken, or its error is told; nothing else will do", async () => {
  const environment = { PALISADE_TEST_PROVIDER: "docker" };
  const found = await chooseRedis({ fallback: "wasm" }, { environment, providers: redis(says("here"), says("containers")) });
  expect(found.provider.name).toBe("docker");
  await expect(chooseRedis({ fallback: "wasm" }, { environment, providers: redis(says("here"), noEngine) })).rejects.toThrow(
    /^no Docker engine/,
  );
  await expect(choosePostgres("docker", { environment: {}, providers: postgres(says("here"), noEngine) })).rejects.toThrow(
    /^no Docker engine/,
  );
});

test("a caller that accepts a lesser server gets it, because containers are then not the only way", async () => {
  const told = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  onTestFinished(() => told.mockRestore());
  const providers = redis(noLocalRedis, says("containers"));
  expect((await chooseRedis({ fallback: "wasm" }, { environment: {}, providers })).provider.name).toBe("wasm");
  expect(told).toHaveBeenCalledExactlyOnceWith(expect.stringMatching(/^no Redis server can be had[\s\S]*Valkey in WebAssembly/));
});
