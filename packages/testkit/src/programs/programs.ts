// Finds the programs that servers of this machine are: the named one, one on PATH, or one fetched
// from the distribution's packages without root. A lesser one is never taken in silence: without one
// the error names all that was tried, and what helps.
import { basename, delimiter, join } from "node:path";
import { type Account, cached, distribution, type Environment, isExecutable, reachableBy, run, serverAccount } from "./cache.js";
import { fetchPackages, type Packaged, unpackedIn } from "./packages.js";

export interface Program {
  readonly binary: string;
  /** For LD_LIBRARY_PATH; empty when the system has all its libraries. */
  readonly libraryPath: string;
  /** As which it runs where this process is root. */
  readonly account: Account | undefined;
  /** With its name: "Redis 7.2.4". */
  readonly version: string;
  /** Where it was found, in words. */
  readonly from: string;
}

export interface Wanted extends Packaged {
  /** The variable that names another one. */
  readonly variable: string;
  /** What it says at --version, or when asked so; all groups make the version. */
  readonly version: RegExp;
  readonly asksVersion?: string;
  /** Other names that it may have on PATH. */
  readonly otherNames?: readonly string[];
  readonly oldestMajor?: number;
  /** What helps beside installing the packages. */
  readonly remedies?: readonly string[];
}

export const wanted = {
  redis: {
    what: "Redis server",
    packages: ["redis-server", "redis-tools"],
    path: "usr/bin/redis-server",
    variable: "REDIS_SERVER_BIN",
    version: /(Redis|Valkey) server v=(\S+)/,
    otherNames: ["valkey-server"],
    oldestMajor: 7,
    remedies: [
      "brew install redis    (macOS; Fedora: sudo dnf install valkey; Alpine: apk add redis)",
      "PALISADE_TEST_PROVIDER=docker    (with a container engine running)",
    ],
  },
  /** It refuses to run as root. */
  pgbouncer: {
    what: "pgbouncer",
    packages: ["pgbouncer"],
    path: "usr/sbin/pgbouncer",
    variable: "PGBOUNCER_BIN",
    version: /(PgBouncer \S+)/i,
  },
  prometheus: {
    what: "Prometheus",
    packages: ["prometheus"],
    path: "usr/bin/prometheus",
    variable: "PROMETHEUS_BIN",
    version: /(prometheus), version (\S+)/,
  },
  chromium: {
    what: "Chromium",
    packages: ["chromium-headless-shell", "chromium-common", "fonts-dejavu-core"],
    path: "usr/lib/chromium/chromium-headless-shell",
    kept: ["fonts"],
    variable: "CHROMIUM_BIN",
    version: /(Chromium|Chrome|HeadlessChrome)[ /](\S+)/,
    otherNames: ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"],
  },
  etcd: {
    what: "etcd",
    packages: ["etcd-server"],
    path: "usr/bin/etcd",
    variable: "ETCD_BIN",
    version: /(etcd) Version: (\S+)/,
  },
  haproxy: {
    what: "HAProxy",
    packages: ["haproxy"],
    path: "usr/sbin/haproxy",
    variable: "HAPROXY_BIN",
    version: /(HA-?Proxy) version (\S+)/i,
    asksVersion: "-v",
  },
} as const satisfies Readonly<Record<string, Wanted>>;

const found = new Map<Wanted, Promise<Program>>();

/** Looked for once per process. */
export function programOf(name: keyof typeof wanted): Promise<Program> {
  const program = found.get(wanted[name]) ?? findProgram(wanted[name], process.env);
  found.set(wanted[name], program);
  return program;
}

/** A way to have it, with what it is called in messages. */
export type Way<Found> = readonly [from: string, find: () => Promise<Found>];

interface Search<Found> {
  readonly what: string;
  /** Names the only one that will do. */
  readonly variable: string;
  readonly env: Environment;
  named(place: string): Promise<Found>;
  readonly ways: readonly Way<Found>[];
  readonly helps: readonly string[];
}

/** What was asked for, or an error; else the first that can be had, or an error that names all that was tried and what helps. */
export async function firstFound<Found>({ what, variable, env, named, ways, helps }: Search<Found>): Promise<Found> {
  const asked = env[variable];
  if (asked)
    return await named(asked).catch((cause: Error) => {
      throw new Error(`${variable} names ${asked}, but ${cause.message}`, { cause });
    });
  const tried = [`${variable}: not set`];
  for (const [from, find] of ways) {
    try {
      return await find();
    } catch (cause) {
      tried.push(`${from}: ${(cause as Error).message}`);
    }
  }
  const list = (lines: readonly string[], mark: string): string => lines.map((line) => `  ${mark}${line}\n`).join("");
  throw new Error(
    `no ${what} can be had on this machine. Tried:\n${list(tried, "- ")}Any one of these helps:\n${list(helps, "")}`.trimEnd(),
  );
}

export async function findProgram(which: Wanted, env: Environment): Promise<Program> {
  const account = serverAccount();
  const names = [basename(which.path), ...(which.otherNames ?? [])];
  const onPath = async (): Promise<Program> => {
    const folders = [...(env.PATH ?? "").split(delimiter), "/usr/sbin"].filter((folder) => folder !== "");
    const complaints: string[] = [];
    for (const binary of names.flatMap((name) => folders.map((folder) => join(folder, name)))) {
      if (!(await isExecutable(binary)) || !(await reachableBy(binary, account))) continue;
      const found = await inspected(which, { binary, libraryPath: "", account, from: "on PATH" }).catch((cause: Error) => cause);
      if (!(found instanceof Error)) return found;
      complaints.push(found.message);
    }
    throw new Error(complaints.length === 0 ? `no ${names.join(", ")} is there` : complaints.join("; "));
  };
  const unpacked = async (): Promise<Program> => {
    const build = (content: string): Promise<void> => fetchPackages(content, which, env);
    const content = await cached({ name: `${names[0]}-${await distribution()}`, build, account, env });
    const from = "packages of this distribution, unpacked without root";
    return await inspected(which, { ...(await unpackedIn(content, which)), account, from });
  };
  const oldest = which.oldestMajor === undefined ? "" : `    (${which.oldestMajor}.0 or newer)`;
  return await firstFound({
    what: which.what,
    variable: which.variable,
    env,
    named: (binary) => inspected(which, { binary, libraryPath: "", account, from: which.variable }),
    ways: [
      ["PATH", onPath],
      ["packages without root", unpacked],
    ],
    helps: [
      `sudo apt-get install ${which.packages.join(" ")}`,
      `${which.variable}=/path/to/${names[0]}${oldest}`,
      ...(which.remedies ?? []),
    ],
  });
}

/** Asks it for its version: the proof that it runs here. */
async function inspected(which: Wanted, program: Omit<Program, "version">): Promise<Program> {
  const { binary, account } = program;
  const options = { ...account, cwd: "/", env: { ...process.env, ...libraryVariable(program) }, timeout: 10_000 };
  const { stdout } = await run(binary, [which.asksVersion ?? "--version"], options).catch((cause: Error) => {
    throw new Error(`${binary} does not run: ${cause.message.trim()}`, { cause });
  });
  const [, ...groups] = which.version.exec(stdout) ?? [];
  if (groups.length === 0) throw new Error(`${binary} does not say that it is ${which.what}: ${stdout.trim()}`);
  const version = groups.join(" ");
  if (Number.parseInt(/\d+/.exec(version)?.[0] ?? "0", 10) < (which.oldestMajor ?? 0))
    throw new Error(`${binary} is ${version}, older than ${which.oldestMajor}.0`);
  return { ...program, version };
}

/** For the environment of a program that was unpacked. */
export function libraryVariable({ libraryPath }: Pick<Program, "libraryPath">): Record<string, string> {
  return libraryPath === "" ? {} : { LD_LIBRARY_PATH: libraryPath };
}
