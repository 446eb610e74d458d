// Which programs are taken for servers, what is said when there are none, and what is kept of those
// that were fetched or built. The programs found here are scripts that only know their version.
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { compile, SHIM_FILE } from "../../src/clock/wall-clock.js";
import { cached } from "../../src/programs/cache.js";
import { CITUS_VARIABLE, resolveCitus, resolvePostgres } from "../../src/programs/postgres.js";
import { findProgram, wanted } from "../../src/programs/programs.js";
import { choose } from "../../src/servers/choose.js";
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

describe("the Redis server", () => {
  const find = (env: Readonly<Record<string, string>>) => findProgram(wanted.redis, { PALISADE_CACHE_DIR: at("cache"), ...env });
  const redis = (version: string): string => `Redis server v=${version} sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=0`;

  test("is the named one, or an error; else one on PATH, Valkey as well, that is not too old", async () => {
    const named = await impostor(at("named", "my-redis"), redis("7.2.4"));
    await impostor(at("old", "redis-server"), redis("5.0.14"));
    const valkey = await impostor(at("new", "valkey-server"), redis("8.1.0").replace("Redis", "Valkey"));
    const PATH = `${at("old")}:${at("new")}`;
    expect(await find({ REDIS_SERVER_BIN: named, PATH })).toMatchObject({ binary: named, version: "Redis 7.2.4" });
    await expect(find({ REDIS_SERVER_BIN: at("gone"), PATH })).rejects.toThrow(/REDIS_SERVER_BIN names .*gone, but .* does not run/);
    expect(await find({ PATH })).toMatchObject({ binary: valkey, version: "Valkey 8.1.0" });
  });

  test("that cannot be had is an error that names all that was tried and what helps; a package that is too old is one", async () => {
    await impostor(at("redis-server"), redis("5.0.14"));
    const error = (await find({ PATH: folder }).catch((cause: Error) => cause)) as Error;
    expect(error.message.split("\n").slice(0, 4)).toEqual([
      "no Redis server can be had on this machine. Tried:",
      "  - REDIS_SERVER_BIN: not set",
      expect.stringContaining(`PATH: ${at("redis-server")} is Redis 5.0.14, older than 7.0`),
      "  - packages without root: apt-get is not on PATH",
    ]);
    expect(error.message).toMatch(/sudo apt-get install redis-server[\s\S]*PALISADE_TEST_PROVIDER=docker/);
    await script(at("apt-get"), 'case "$*" in *download*) touch redis.deb ;; esac');
    await script(at("dpkg"), '[ "$1" = -x ] || exit 0; mkdir -p "$3/usr/bin"; cp "$(dirname "$0")/redis-server" "$3/usr/bin/"');
    await expect(find({ PATH: folder })).rejects.toThrow(/packages without root: .*redis-server is Redis 5\.0\.14, older than 7\.0\n/);
  });
});

async function postgresIn(binFolder: string, version: string): Promise<string> {
  for (const program of ["postgres", "initdb"]) await impostor(join(binFolder, program), `${program} (PostgreSQL) ${version} (Debian)`);
  return binFolder;
}

describe("Postgres", () => {
  const nothing = () => Promise.reject(new Error("not installed"));
  const find = (npm: () => Promise<string> = nothing, env: Readonly<Record<string, string>> = {}) =>
    resolvePostgres({ PATH: folder, ...env }, npm, at("distribution"));

  test("is the named one, or an error; else npm's, else the system's, else the distribution's newest", async () => {
    await postgresIn(at("distribution", "13", "bin"), "13.2");
    await expect(find()).rejects.toThrow(
      /no Postgres can be had.*npm package .*not installed.*version 13\.2, older than 15.*apt-get install postgresql.*PALISADE_POSTGRES_BIN/s,
    );
    await postgresIn(at("distribution", "15", "bin"), "15.8");
    await postgresIn(at("distribution", "16", "bin"), "16.3");
    expect(await find()).toMatchObject({ version: "16.3" });
    await postgresIn(folder, "16.4");
    expect((await find(async () => at("empty"))).description).toBe(`Postgres 16.4 (${folder})`);
    const npm = await postgresIn(at("npm"), "17.1");
    expect(await find(async () => npm)).toMatchObject({ binFolder: npm, version: "17.1" });
    const asking = (asked: string) => find(async () => npm, { PALISADE_POSTGRES_BIN: asked });
    const asked = await postgresIn(at("asked for"), "16.3");
    expect(await asking(asked)).toMatchObject({ binFolder: asked, description: expect.stringContaining("PALISADE_POSTGRES_BIN") });
    await expect(asking(at("nowhere"))).rejects.toThrow(/PALISADE_POSTGRES_BIN names .*nowhere, but no postgres and initdb there/);
  });

  test("with Citus is the named folder, which says what is missing there", async () => {
    const asking = (named: string) => resolveCitus({ [CITUS_VARIABLE]: named });
    await expect(resolveCitus({})).rejects.toThrow(new RegExp(`${CITUS_VARIABLE}: not set\n[\\s\\S]*container engine`));
    await postgresIn(at("bin"), "15.6");
    await impostor(at("bin", "pg_config"), `${at("share")}\n${at("lib")}`);
    await expect(asking(folder)).rejects.toThrow(/it has no extension Citus: there is no .*citus\.control/);
    await mkdir(at("share", "extension"), { recursive: true });
    await writeFile(at("share", "extension", "citus.control"), "comment = 'Citus'\ndefault_version = '13.2-1'\n");
    await mkdir(at("lib"));
    await writeFile(at("lib", "citus.so"), "");
    expect(await asking(folder)).toMatchObject({ description: `Citus 13.2-1 on Postgres 15.6 (${CITUS_VARIABLE}=${folder})` });
  });

  test("under Patroni needs programs that are named at once, with the packages that bring them", async () => {
    const nothing = resolvePatroniPrograms({ PATH: "", PALISADE_POSTGRES_BIN: "/no/such/folder" }, []);
    await expect(nothing).rejects.toBeInstanceOf(MissingPrograms);
    await expect(nothing).rejects.toThrow(/there is no patroni that runs; there is no postgres, .*apt-get install patroni etcd-server/);
  });
});

describe("what is kept", () => {
  let builds = 0;
  const ask = (fill: (content: string) => Promise<unknown>, home = at("home")) => {
    const build = async (content: string): Promise<void> => {
      builds += 1;
      await fill(content);
    };
    return cached({ name: "thing", env: { PALISADE_CACHE_DIR: home }, build });
  };

  test("is built once and never seen half: of several builds one wins, and one that fails leaves nothing", async () => {
    builds = 0;
    const slowly = async (content: string): Promise<void> => {
      await writeFile(join(content, "a"), "");
      await expect.poll(() => builds).toBe(5);
      await writeFile(join(content, "b"), "");
    };
    const contents = await Promise.all(Array.from({ length: 5 }, () => ask(slowly)));
    expect((await readdir(contents[0] ?? "")).sort()).toEqual(["a", "b"]);
    expect(await readdir(at("home"))).toEqual(["thing"]);
    expect(await ask(slowly)).toBe(contents[0]);
    expect(builds).toBe(5);
    await expect(ask(() => Promise.reject(new Error("no network")), at("other"))).rejects.toThrow("no network");
    expect(await readdir(at("other"))).toEqual([]);
  });

  test("is refused by a place that cannot be written, or whose path initdb cannot pass to its shell", async () => {
    await writeFile(at("file"), "");
    const nothing = async (): Promise<void> => {};
    await expect(ask(nothing, at("file", "below"))).rejects.toThrow(/tried .*below \(it cannot be written \(ENOTDIR\)\)/);
    await expect(ask(nothing, at("with $HOME in it"))).rejects.toThrow(
      /\(initdb takes no path with.*; set PALISADE_CACHE_DIR to one that /,
    );
  });
});

describe("the clock library", () => {
  const here = () => compile({ PATH: at("bin"), PALISADE_CACHE_DIR: at("cache") });

  test("is compiled by tcc of the distribution's packages where there is no compiler", async () => {
    await script(at("bin", "apt-get"), 'case "$*" in *download*) touch tcc.deb ;; esac');
    // The last argument but one names the output.
    await script(at("bin", "packed"), `while [ "$#" -gt 2 ]; do shift; done; echo 'by tcc' > "$1"`);
    await script(at("bin", "dpkg"), '[ "$1" = -x ] || exit 0; mkdir -p "$3/usr/bin"; cp "$(dirname "$0")/packed" "$3/usr/bin/tcc"');
    const { folder: made } = (await here()) as { folder: string };
    expect(await readFile(join(made, SHIM_FILE), "utf8")).toBe("by tcc\n");
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
  const here = says("here");
  const noLocal = fails("no server can be had on this machine");
  const withEngine: NodeJS.ProcessEnv = { DOCKER_HOST: "unix:///a/socket" };
  interface Circumstances {
    readonly env?: NodeJS.ProcessEnv;
    readonly path?: string;
    readonly fallback?: "wasm";
  }
  const chosen = (local: object, docker: object, { env = withEngine, path, fallback }: Circumstances = {}) => {
    const among = { local, docker, wasm: says("wasm") } as Record<string, ReturnType<typeof says>>;
    const wish = { kind: "Redis", path, provider: undefined, fallback } as const;
    return choose(wish, among, env).then(({ origin }) => origin);
  };

  test("is the one that was asked for, by its name or the path of a server, or its error is told; nothing else will do", async () => {
    await expect(chosen(fails("it does not run"), says("containers"), { path: "/gone" })).rejects.toThrow(/^it does not run$/);
    const asked = { ...withEngine, PALISADE_TEST_PROVIDER: "docker" };
    await expect(chosen(here, fails("no engine"), { env: asked, fallback: "wasm" })).rejects.toThrow(/^no engine$/);
    await expect(chosen(here, here, { env: { ...asked, PALISADE_TEST_PROVIDER: "cloud" } })).rejects.toThrow(
      /no Redis provider is called "cloud".*there are: local, docker, wasm/,
    );
  });

  test("is an engine that answers and has the image, else this machine, with a notice; with neither one error tells both", async () => {
    const told = vi.spyOn(process.stderr, "write").mockReturnValue(true);
    onTestFinished(() => told.mockRestore());
    expect(await chosen(here, says("containers"))).toBe("containers");
    expect(told).not.toHaveBeenCalled();
    const noImage = fails("no such image");
    expect([await chosen(here, noImage), await chosen(here, noImage)]).toEqual(["here", "here"]);
    expect(told).toHaveBeenCalledExactlyOnceWith(expect.stringContaining("Redis does not run in containers: no such image"));
    await expect(chosen(noLocal, noImage)).rejects.toThrow(
      /^no server can be had on this machine\nNor can it run in a container: no such image$/,
    );
    expect(await chosen(noLocal, noImage, { fallback: "wasm" })).toBe("wasm");
    expect(told).toHaveBeenLastCalledWith(expect.stringMatching(/^no server can be had[\s\S]*Valkey in WebAssembly/));
  });
});
