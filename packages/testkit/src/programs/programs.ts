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

export async function findProgram(which: Wanted, env: Environment): Promise<Program> {
  const account = serverAccount();
  const named = env[which.variable];
  if (named)
    return await inspected(which, { binary: named, libraryPath: "", account, from: which.variable }).catch((cause: Error) => {
      throw new Error(`${which.variable} names ${named}, but ${cause.message}`, { cause });
    });
  const tried = [`${which.variable}: not set`];
  const names = [basename(which.path), ...(which.otherNames ?? [])];
  const folders = [...(env.PATH ?? "").split(delimiter), "/usr/sbin"].filter((folder) => folder !== "");
  const complaints: string[] = [];
  for (const binary of names.flatMap((name) => folders.map((folder) => join(folder, name)))) {
    if (!(await isExecutable(binary)) || !(await reachableBy(binary, account))) continue;
    try {
      return await inspected(which, { binary, libraryPath: "", account, from: "on PATH" });
    } catch (cause) {
      complaints.push((cause as Error).message);
    }
  }
  tried.push(`PATH: ${complaints.length === 0 ? `no ${names.join(", ")} is there` : complaints.join("; ")}`);
  let install = [`sudo apt-get install ${which.packages.join(" ")}`];
  try {
    const build = (content: string): Promise<void> => fetchPackages(content, which, env);
    const content = await cached({ name: `${names[0]}-${await distribution()}`, build, account, env });
    return await inspected(which, {
      ...(await unpackedIn(content, which)),
      account,
      from: "packages of this distribution, unpacked without root",
    });
  } catch (cause) {
    // Where the distribution's own is too old, installing it would change nothing.
    if (cause instanceof TooOld) install = [];
    tried.push(`packages without root: ${(cause as Error).message}`);
  }
  const oldest = which.oldestMajor === undefined ? "" : `    (${which.oldestMajor}.0 or newer)`;
  throw new Error(
    [
      `no ${which.what} can be had on this machine. Tried:`,
      ...tried.map((attempt) => `  - ${attempt}`),
      "Any one of these helps:",
      ...[...install, `${which.variable}=/path/to/${names[0]}${oldest}`, ...(which.remedies ?? [])].map((remedy) => `  ${remedy}`),
    ].join("\n"),
  );
}

class TooOld extends Error {}

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
    throw new TooOld(`${binary} is ${version}, older than ${which.oldestMajor}.0`);
  return { ...program, version };
}

/** For the environment of a program that was unpacked. */
export function libraryVariable({ libraryPath }: Pick<Program, "libraryPath">): Record<string, string> {
  return libraryPath === "" ? {} : { LD_LIBRARY_PATH: libraryPath };
}
