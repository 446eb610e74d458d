// Which programs are taken for servers, what is said when there are none, and what is kept of those
// that were fetched or built. The programs found here are scripts that only know their version.
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { compile, SHIM_FILE } from "../../src/clock/wall-clock.js";
import type { PostgresProvider } from "../../src/postgres/local.js";
import { cached, NoPlace } from "../../src/programs/cache.js";
import { CITUS_VARIABLE, resolveCitus, resolvePostgres, type Sources } from "../../src/programs/postgres.js";
import { findProgram, wanted } from "../../src/programs/programs.js";
import type { RedisProvider } from "../../src/redis/server.js";
import { choosePostgres, chooseRedis } from "../../src/servers/choose.js";
import { MissingPrograms, resolvePatroniPrograms } from "../../src/servers/patroni.js";

let folder = "";

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "palisade test "));
  await chmod(folder, 0o755); // The account that runs the servers of root must be able to enter.
});

afterEach(() => rm(folder, { recursive: true }));

const at = (...path: readonly string[]): string => join(folder, ...path);

async function script(path: string, body: string): Promise<string> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, `#!/bin/sh\nPATH=/usr/bin:/bin\n${body}\n`, { mode: 0o755 });
  return path;
}

/** Answers --version as a server does; a resolver asks for nothing else. */
const impostor = (path: string, says: string): Promise<string> => script(path, `echo '${says}'`);
const messageOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => "found one",
    (error: Error) => error.message,
  );

describe("the Redis server", () => {
  const find = (env: Readonly<Record<string, string>>) => findProgram(wanted.redis, { PALISADE_CACHE_DIR: at("cache"), ...env });
  const redis = (version: string): string => `Redis server v=${version} sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=0`;

  test("named by REDIS_SERVER_BIN is taken before any on PATH; one that does not run is an error", async () => {
    const named = await impostor(at("named", "my-redis"), redis("7.2.4"));
    await impostor(at("redis-server"), redis("8.0.0"));
    expect(await find({ REDIS_SERVER_BIN: named, PATH: folder })).toMatchObject({
      binary: named,
      version: "Redis 7.2.4",
      from: "REDIS_SERVER_BIN",
    });
    await expect(find({ REDIS_SERVER_BIN: at("gone"), PATH: folder })).rejects.toThrow(
      /REDIS_SERVER_BIN names .*gone, but .* does not run/,
    );
  });

  test("is valkey-server as well, and no redis-server that is too old", async () => {
    await impostor(at("old", "redis-server"), redis("5.0.14"));
    const valkey = await impostor(at("new", "valkey-server"), redis("8.1.0").replace("Redis", "Valkey"));
    expect(await find({ PATH: `${at("old")}:${at("new")}` })).toMatchObject({ binary: valkey, version: "Valkey 8.1.0" });
  });

  test("that cannot be had is an error that names all that was tried and what helps", async () => {
    await impostor(at("redis-server"), redis("5.0.14"));
    const message = await messageOf(find({ PATH: folder }));
    expect(message.split("\n").slice(0, 4)).toEqual([
      "no Redis server can be had on this machine. Tried:",
      "  - REDIS_SERVER_BIN: not set",
      expect.stringContaining(`PATH: ${at("redis-server")} is Redis 5.0.14, older than 7.0`),
      "  - packages without root: apt-get is not on PATH",
    ]);
    expect(message).toContain("sudo apt-get install redis-server");
    expect(message).toContain("PALISADE_TEST_PROVIDER=docker");
  });

  test("that is too old in the distribution's package as well is not to be installed", async () => {
    await impostor(at("redis-server"), redis("5.0.14"));
    await script(at("apt-get"), 'case "$*" in *download*) touch redis.deb ;; esac');
    await script(at("dpkg"), '[ "$1" = -x ] || exit 0; mkdir -p "$3/usr/bin"; cp "$(dirname "$0")/redis-server" "$3/usr/bin/"');
    const message = await messageOf(find({ PATH: folder }));
    expect(message).toMatch(/packages without root: .*redis-server is Redis 5\.0\.14, older than 7\.0\n/);
    expect(message).not.toContain("apt-get install");
    expect(message).toContain("REDIS_SERVER_BIN=/path/to/redis-server    (7.0 or newer)");
  });
});

async function postgresIn(binFolder: string, version: string): Promise<string> {
  for (const program of ["postgres", "initdb"]) await impostor(join(binFolder, program), `${program} (PostgreSQL) ${version} (Debian)`);
  return binFolder;
}

describe("Postgres", () => {
  const find = (sources: Partial<Sources> = {}) =>
    resolvePostgres({ environment: { PATH: folder }, fromNpm: async () => undefined, distributionRoot: at("distribution"), ...sources });

  test("in PALISADE_POSTGRES_BIN comes before all others, and is an error where it cannot be used", async () => {
    const npm = await postgresIn(at("npm"), "17.1");
    const asking = (asked: string) => find({ environment: { PALISADE_POSTGRES_BIN: asked }, fromNpm: async () => npm });
    const asked = await postgresIn(at("asked for"), "16.3");
    expect(await asking(asked)).toMatchObject({
      binFolder: asked,
      version: "16.3",
      description: expect.stringContaining("PALISADE_POSTGRES_BIN"),
    });
    await expect(asking(at("nowhere"))).rejects.toThrow(/PALISADE_POSTGRES_BIN=.*nowhere cannot be used: no postgres and initdb there/);
    await expect(asking(await postgresIn(at("old"), "12.4"))).rejects.toThrow("version 12.4, older than 15");
  });

  test("of npm comes before the system's, which is taken where that is missing or does not run", async () => {
    const npm = await postgresIn(at("npm"), "17.1");
    await postgresIn(folder, "16.3");
    expect(await find({ fromNpm: async () => npm })).toMatchObject({ binFolder: npm, version: "17.1" });
    expect((await find()).description).toMatch(/^Postgres 16\.3 .*npm package .*: not installed/);
    expect((await find({ fromNpm: async () => at("empty") })).description).toMatch(/npm package .*: no postgres and initdb there/);
  });

  test("of the distribution is its newest version; where all are too old, the error says what was tried and what helps", async () => {
    await postgresIn(at("distribution", "13", "bin"), "13.2");
    await expect(find()).rejects.toThrow(
      /no Postgres can be had.*npm package .*not installed.*version 13\.2, older than 15.*Install the dependencies.*apt-get install postgresql.*PALISADE_POSTGRES_BIN/s,
    );
    await postgresIn(at("distribution", "15", "bin"), "15.8");
    await postgresIn(at("distribution", "16", "bin"), "16.3");
    expect(await find()).toMatchObject({ version: "16.3" });
  });

  test("with Citus is the named folder, which says what is missing there", async () => {
    const asking = (named: string) => resolveCitus({ [CITUS_VARIABLE]: named });
    await expect(resolveCitus({})).rejects.toThrow(new RegExp(`${CITUS_VARIABLE}, which is not set\\. Set ${CITUS_VARIABLE} .*Docker`));
    await postgresIn(at("bin"), "15.6");
    await expect(asking(folder)).rejects.toThrow("no pg_config there that runs");
    await impostor(at("bin", "pg_config"), `${at("share")}\n${at("lib")}`);
    await expect(asking(folder)).rejects.toThrow(/it has no extension Citus: there is no .*citus\.control/);
    await mkdir(at("share", "extension"), { recursive: true });
    await writeFile(at("share", "extension", "citus.control"), "comment = 'Citus'\ndefault_version = '13.2-1'\n");
    await expect(asking(folder)).rejects.toThrow(/its extension Citus is incomplete: there is no .*citus\.so/);
    await mkdir(at("lib"));
    await writeFile(at("lib", "citus.so"), "");
    expect(await asking(folder)).toMatchObject({ description: `Citus 13.2-1 on Postgres 15.6 (${CITUS_VARIABLE}=${folder})` });
  });

  test("under Patroni needs programs that are named at once, with the packages that bring them", async () => {
    const nothing = resolvePatroniPrograms({ PATH: "", PALISADE_POSTGRES_BIN: "/no/such/folder" }, []);
    await expect(nothing).rejects.toBeInstanceOf(MissingPrograms);
    await expect(nothing).rejects.toThrow(
      /there is no patroni that runs; there is no postgres, .*pg_basebackup.*apt-get install patroni etcd-server haproxy postgresql$/,
    );
  });
});

describe("what is kept", () => {
  let builds = 0;
  const ask = (fill: (content: string) => Promise<unknown> = (content) => writeFile(join(content, "part"), "whole"), home = at("home")) =>
    cached({
      name: "thing",
      env: { PALISADE_CACHE_DIR: home },
      build: async (content) => {
        builds += 1;
        await fill(content);
      },
    });
  beforeEach(() => {
    builds = 0;
  });

  test("is built by the first call, and again once it has lost a file, once for all that find it like that", async () => {
    const first = await ask();
    expect(await ask()).toBe(first);
    expect(builds).toBe(1);
    await rm(join(first, "part"));
    for (const content of await Promise.all([ask(), ask(), ask()])) expect(await readFile(join(content, "part"), "utf8")).toBe("whole");
    expect(await readdir(at("home"))).toEqual(["thing"]);
  });

  test("is never seen half: of several builds one wins, and one that fails leaves nothing", async () => {
    let all = (): void => {};
    const allAreBuilding = new Promise<void>((resolve) => {
      all = resolve;
    });
    const slowly = async (content: string): Promise<void> => {
      await writeFile(join(content, "a"), "");
      if (builds === 5) all();
      await allAreBuilding;
      await writeFile(join(content, "b"), "");
    };
    const contents = await Promise.all(Array.from({ length: 5 }, () => ask(slowly)));
    expect((await readdir(contents[0] ?? "")).sort()).toEqual(["a", "b"]);
    expect(await readdir(at("home"))).toEqual(["thing"]);
    await expect(ask(() => Promise.reject(new Error("no network")), at("other"))).rejects.toThrow("no network");
    expect(await readdir(at("other"))).toEqual([]);
  });

  test("is refused by a place that cannot be written, or whose path initdb cannot pass to its shell", async () => {
    await writeFile(at("file"), "");
    await expect(ask(undefined, at("file", "below"))).rejects.toThrow(/tried .*below \(it cannot be written \(ENOTDIR\)\)/);
    const refused = ask(undefined, at("with $HOME in it"));
    await expect(refused).rejects.toBeInstanceOf(NoPlace);
    await expect(refused).rejects.toThrow(/\(initdb takes no path with.*; set PALISADE_CACHE_DIR to a folder that /);
  });
});

describe("the clock library", () => {
  const here = () => compile({ PATH: at("bin"), PALISADE_CACHE_DIR: at("cache") });
  /** Its last argument but one names the output. */
  const compiler = (name: string, text: string) => script(at("bin", name), `while [ "$#" -gt 2 ]; do shift; done; echo '${text}' > "$1"`);
  const compiledBy = async (): Promise<string> => await readFile(join(((await here()) as { folder: string }).folder, SHIM_FILE), "utf8");

  test("is compiled by a compiler on PATH before any package", async () => {
    await compiler("gcc", "by gcc");
    await script(at("bin", "apt-get"), "exit 1");
    expect(await compiledBy()).toBe("by gcc\n");
  });

  test("is compiled by tcc of the distribution's packages where there is none", async () => {
    await script(at("bin", "apt-get"), 'case "$*" in *download*) touch tcc.deb ;; esac');
    await compiler("tcc-of-the-package", "by tcc");
    await script(
      at("bin", "dpkg"),
      '[ "$1" = -x ] || exit 0; mkdir -p "$3/usr/bin"; cp "$(dirname "$0")/tcc-of-the-package" "$3/usr/bin/tcc"',
    );
    expect(await compiledBy()).toBe("by tcc\n");
  });

  test("that nothing compiles is one sentence that says what was tried and what helps", async () => {
    expect(await here()).toEqual({
      missing:
        "no C compiler works (cc is not on PATH; gcc is not on PATH; clang is not on PATH; tcc is not on PATH; apt-get is not on PATH); " +
        "installing gcc, clang or tcc helps",
    });
  });
});

// Providers that can only say what they are: no server is started here.
describe("the provider", () => {
  const says = (line: string) => ({ describe: async () => line });
  const fails = (message: string) => ({ describe: () => Promise.reject(new Error(message)) });
  const noLocal = fails("no server can be had on this machine. Tried:\n  - PATH\nAny one of these helps: a remedy");
  const noEngine = fails("no Docker engine answers (none): start one");
  const redis = (local: object, docker: object) =>
    ({ local, docker, wasm: { name: "wasm", ...says("wasm") } }) as Record<"local" | "docker" | "wasm", RedisProvider>;
  const choose = (local: object, docker: object, env = {}) => chooseRedis({}, redis(local, docker), env).then(({ origin }) => origin);

  test("is this machine where it has a server, and then no engine is asked", async () => {
    expect(await choose(says("Redis 7 (here)"), fails("an engine was asked"))).toBe("Redis 7 (here)");
    const postgres = { local: says("Postgres 17 (here)"), docker: noEngine } as unknown as Record<"local" | "docker", PostgresProvider>;
    expect((await choosePostgres(undefined, postgres, {})).origin).toBe("Postgres 17 (here)");
  });

  test("is an engine where this machine has none, and the line says why; with neither one error tells both", async () => {
    expect(await choose(noLocal, says("redis:7 (containers)"))).toBe("redis:7 (containers), because no server can be had on this machine");
    await expect(choose(noLocal, noEngine)).rejects.toThrow(
      /^no server can be had on this machine\. Tried:\n {2}- PATH\nAny one of these helps: a remedy\nNor can it run in a container: no Docker engine answers \(none\): start one$/,
    );
  });

  test("that was asked for, by its name or the path of a server, is taken or its error is told; nothing else will do", async () => {
    await expect(choose(fails("it does not run"), says("containers"), { REDIS_SERVER_BIN: "/gone" })).rejects.toThrow(/^it does not run$/);
    const environment = { PALISADE_TEST_PROVIDER: "docker" };
    expect(await choose(says("here"), says("containers"), environment)).toBe("containers");
    await expect(chooseRedis({ fallback: "wasm" }, redis(says("here"), noEngine), environment)).rejects.toThrow(/^no Docker engine/);
  });

  test("is a lesser server for a caller that accepts it, because containers are then not the only way", async () => {
    const told = vi.spyOn(process.stderr, "write").mockReturnValue(true);
    onTestFinished(() => told.mockRestore());
    expect((await chooseRedis({ fallback: "wasm" }, redis(noLocal, says("containers")), {})).provider.name).toBe("wasm");
    expect(told).toHaveBeenCalledExactlyOnceWith(expect.stringMatching(/^no server can be had[\s\S]*Valkey in WebAssembly/));
  });
});
