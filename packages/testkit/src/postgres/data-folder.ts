// Makes data folders for local servers. initdb takes half a second and its result does not depend
// on the server, so it runs once per version and account, and every server gets a copy.
import { createHash } from "node:crypto";
import { access, chmod, chown, constants, mkdir, realpath, statfs } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { scratchFolder } from "../process/scratch-folder.js";
import type { PostgresInstallation } from "../resolve/postgres.js";
import { prepared, reachableBy, run } from "../resolve/postgres-cache.js";
import { appendSettings, configure } from "./boot.js";
import { type Address, type HostOptions, STANDBY_NAME } from "./provider.js";

// Room for the cluster and all the WAL that it keeps by default.
const ROOM_BYTES = 1_500_000_000;

/** The superuser of every server. Servers trust every local connection and hold test data only. */
export const SUPERUSER = "postgres";

// Locale C: sorting and messages are the same on every machine, and messages can be recognised.
export const initdbArguments = [
  "--username",
  SUPERUSER,
  "--auth",
  "trust",
  "--encoding",
  "UTF8",
  "--locale",
  "C",
  "--no-sync",
  "--no-instructions",
];

async function initialise({ binFolder, account }: PostgresInstallation, content: string): Promise<void> {
  const data = join(content, "data");
  await mkdir(data, { mode: 0o700 });
  if (account !== undefined) await chown(data, account.uid, account.gid);
  // initdb wants a current folder it may look at; ours can be closed to its account.
  const options = { ...account, cwd: data, env: { PATH: process.env.PATH, TZ: "UTC" } };
  try {
    await run(join(binFolder, "initdb"), [...initdbArguments, "--pgdata", data], options);
  } catch (error) {
    throw new Error(`no empty cluster could be made: ${whyNot(error as { stderr?: string } & Error)}`, { cause: error });
  }
}

function whyNot({ stderr = "", message }: { stderr?: string } & Error): string {
  const said = stderr.trim() || message;
  return said.includes("could not look up effective user ID")
    ? `${said}. Postgres only runs as a user that has a name: add one (useradd), or set PALISADE_TEST_PROVIDER=docker.`
    : said;
}

async function emptyCluster(installation: PostgresInstallation): Promise<string> {
  const { binFolder, version, account } = installation;
  const recipe = createHash("sha256")
    // The real path: a copy of this clone that links to its cache finds it.
    .update(JSON.stringify([await realpath(binFolder), version, account, initdbArguments]))
    .digest("hex")
    .slice(0, 8);
  const content = await prepared({
    name: `postgres-data-${version}-${recipe}`,
    account,
    fill: (folder) => initialise(installation, folder),
  });
  return join(content, "data");
}

/**
 * Where the data of servers lies. Without durability that is memory where there is some: a cluster
 * is a thousand files, and creating them on a disk takes from 40 to 700 ms, depending on the file
 * system. Files in memory survive a SIGKILL as well as prepared ones do.
 */
async function rootsFor({ durable }: Pick<HostOptions, "durable">): Promise<string[]> {
  const onDisk = [...new Set([tmpdir(), "/tmp", "/var/tmp"])];
  return !durable && (await hasRoom("/dev/shm")) ? ["/dev/shm", ...onDisk] : onDisk;
}

async function hasRoom(root: string): Promise<boolean> {
  // Only Linux has it, and containers may have a tiny one.
  const space = await statfs(root).catch(() => undefined);
  return space !== undefined && space.bavail * space.bsize > ROOM_BYTES;
}

export interface DataFolder {
  /** The temporary folder that holds it; removing this removes everything. */
  readonly root: string;
  readonly data: string;
}

/** A folder for one server, still without data; removed when this process ends. */
export async function newRoot({ account }: Pick<PostgresInstallation, "account">, options: Pick<HostOptions, "durable">): Promise<string> {
  const roots = await rootsFor(options);
  for (const root of roots) {
    if (!(await writable(root)) || !(await reachableBy(root, account))) continue;
    const folder = scratchFolder("postgres", root);
    if (account !== undefined) await chmod(folder, 0o711);
    return folder;
  }
  throw new Error(`No folder for the data of a Postgres server: tried ${roots.join(", ")}. Set TMPDIR to a folder that can be written.`);
}

async function writable(root: string): Promise<boolean> {
  return await access(root, constants.W_OK | constants.X_OK).then(
    () => true,
    () => false,
  );
}

export async function newDataFolder(installation: PostgresInstallation, options: HostOptions): Promise<DataFolder> {
  const [root, source] = await Promise.all([newRoot(installation, options), emptyCluster(installation)]);
  const data = join(root, "data");
  // With owner and mode: Postgres refuses a folder that is not its own or is open to others.
  await run("cp", ["-a", source, data]);
  await configure(data, options);
  return { root, data };
}

/**
 * Turns a copy of the empty cluster into a standby of another copy. Both descend from the same
 * clean shutdown, so the WAL of the one continues the other's and no base backup is needed;
 * pg_basebackup does not come with the npm binaries anyway.
 */
export async function makeStandby({ data }: DataFolder, { host, port }: Address): Promise<void> {
  // Its existence counts, not its content; its owner has to be the server's account.
  await run("cp", ["-p", join(data, "PG_VERSION"), join(data, "standby.signal")]);
  await appendSettings(data, {
    primary_conninfo: `host=${host} port=${port} user=${SUPERUSER} application_name=${STANDBY_NAME}`,
    // How soon it looks for its primary again; the default of 5 s is for wide networks.
    wal_retrieve_retry_interval: "20ms",
  });
}
