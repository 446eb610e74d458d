// Finds a program that tests of one kind run beside the servers: the named one, one on PATH, or one
// fetched from the distribution's packages without root. Without one the test fails and says what
// helps.
import { access, constants } from "node:fs/promises";
import { basename, delimiter, join } from "node:path";
import { distribution } from "./built-once.js";
import { fetchPackages, type PackagedProgram, unpacked } from "./distribution-packages.js";
import { type Account, prepared, reachableBy, run, serverAccount } from "./postgres-cache.js";
import type { Environment } from "./private-apt.js";

export interface FoundProgram {
  readonly binary: string;
  /** For LD_LIBRARY_PATH; empty when the system has all its libraries. */
  readonly libraryPath: string;
  /** As which it runs where this process is root. */
  readonly account: Account | undefined;
  readonly version: string;
}

interface WantedProgram extends PackagedProgram {
  /** The variable that names another one. */
  readonly variable: string;
  /** What it says at --version, or when asked so; the first group is the version. */
  readonly version: RegExp;
  readonly asksVersion?: string;
  /** Other names that it may have on PATH. */
  readonly otherNames?: readonly string[];
}

/** It refuses to run as root. */
const pgbouncer: WantedProgram = {
  what: "pgbouncer",
  packages: ["pgbouncer"],
  path: "usr/sbin/pgbouncer",
  variable: "PGBOUNCER_BIN",
  version: /PgBouncer (\S+)/i,
};
const prometheus: WantedProgram = {
  what: "Prometheus",
  packages: ["prometheus"],
  path: "usr/bin/prometheus",
  variable: "PROMETHEUS_BIN",
  version: /version (\S+)/,
};
const chromium: WantedProgram = {
  what: "Chromium",
  packages: ["chromium-headless-shell", "chromium-common", "fonts-dejavu-core"],
  path: "usr/lib/chromium/chromium-headless-shell",
  kept: ["fonts"],
  variable: "CHROMIUM_BIN",
  version: /(?:Chromium|Chrome|HeadlessChrome)[ /](\S+)/,
  otherNames: ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"],
};
const etcd: WantedProgram = {
  what: "etcd",
  packages: ["etcd-server"],
  path: "usr/bin/etcd",
  variable: "ETCD_BIN",
  version: /etcd Version: (\S+)/,
};
const haproxy: WantedProgram = {
  what: "HAProxy",
  packages: ["haproxy"],
  path: "usr/sbin/haproxy",
  variable: "HAPROXY_BIN",
  version: /version (\S+)/,
  asksVersion: "-v",
};
const TIMEOUT_MS = 10_000;

const found = new Map<WantedProgram, Promise<FoundProgram>>();

/** Looked for once per process. */
function once(wanted: WantedProgram): Promise<FoundProgram> {
  const program = found.get(wanted) ?? findProgram(wanted, process.env);
  found.set(wanted, program);
  return program;
}

export const resolvePgbouncer = (): Promise<FoundProgram> => once(pgbouncer);
export const resolvePrometheus = (): Promise<FoundProgram> => once(prometheus);
export const resolveEtcd = (): Promise<FoundProgram> => once(etcd);
export const resolveHaproxy = (): Promise<FoundProgram> => once(haproxy);
export const resolveChromium = (): Promise<FoundProgram> => once(chromium);

async function findProgram(wanted: WantedProgram, env: Environment): Promise<FoundProgram> {
  const account = serverAccount();
  const named = env[wanted.variable];
  if (named !== undefined && named !== "") return await inspected(wanted, { binary: named, libraryPath: "", account });
  const name = basename(wanted.path);
  const folders = [...(env.PATH ?? "").split(delimiter), "/usr/sbin"];
  const places = [name, ...(wanted.otherNames ?? [])].flatMap((known) => folders.map((folder) => [folder, join(folder, known)] as const));
  for (const [folder, binary] of places) {
    if (folder !== "" && (await runs(binary, account))) return await inspected(wanted, { binary, libraryPath: "", account });
  }
  try {
    const fill = (content: string): Promise<void> => fetchPackages(content, wanted, env);
    const content = await prepared({ name: `${name}-${await distribution()}`, account, fill });
    return await inspected(wanted, { ...(await unpacked(content, wanted)), account });
  } catch (cause) {
    const help = `install it (apt-get install ${wanted.packages.join(" ")}), or set ${wanted.variable} to one`;
    throw new Error(`no ${wanted.what} can be had on this machine: ${(cause as Error).message}; ${help}`, { cause });
  }
}

async function runs(binary: string, account: Account | undefined): Promise<boolean> {
  return await access(binary, constants.X_OK).then(
    () => reachableBy(binary, account),
    () => false,
  );
}

/** Asks it for its version: the proof that it runs here. */
async function inspected(wanted: WantedProgram, program: Omit<FoundProgram, "version">): Promise<FoundProgram> {
  const { binary, libraryPath, account } = program;
  const env = libraryPath === "" ? process.env : { ...process.env, LD_LIBRARY_PATH: libraryPath };
  const { stdout } = await run(binary, [wanted.asksVersion ?? "--version"], { ...account, env, timeout: TIMEOUT_MS });
  const version = wanted.version.exec(stdout)?.[1];
  if (version === undefined) throw new Error(`${binary} does not say that it is ${wanted.what}: ${stdout.trim()}`);
  return { ...program, version };
}
