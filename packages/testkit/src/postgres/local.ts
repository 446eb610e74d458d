// One Postgres server of this machine: its data folder, its port, and the ways to break it. initdb
// takes half a second and its result does not depend on the server, so it runs once per version and
// account, and every server gets a copy.
import { createHash } from "node:crypto";
import { access, appendFile, chmod, chown, constants, mkdir, readFile, rm, statfs } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { endsWithUs, outlivesUs, scratchFolder } from "../process/orphans.js";
import { returnPort, takePort } from "../process/port-block.js";
import { continueTree, isRunning, killTree, stopTree } from "../process/process-tree.js";
import { type Child, startChild } from "../process/program.js";
import { type Account, cached, reachableBy, run } from "../programs/cache.js";
import { type PostgresInstallation, thisCitus, thisPostgres } from "../programs/postgres.js";
import { followed, type HostOptions, initdbArguments, PostgresHost, type PostgresProvider, settingsLines } from "./databases.js";

export const localPostgres = localServers(thisPostgres);
/** Of the installation that has the extension Citus. */
export const localCitus = localServers(thisCitus);

function localServers(find: () => Promise<PostgresInstallation>): PostgresProvider {
  return {
    describe: async () => (await find()).description,
    start: async (options) => {
      const installation = await find();
      const [folder] = await Promise.all([newDataFolder(installation, options), sweepAbandonedMemory(installation.account)]);
      return await LocalPostgres.startOn(installation, folder, options.port);
    },
    // Both descend from the same clean shutdown, so the WAL of the one continues the other's and no
    // base backup is needed; pg_basebackup does not come with the npm binaries anyway.
    startStandby: async (options, upstream) => {
      const installation = await find();
      const folder = await newDataFolder(installation, { ...options, settings: { ...options.settings, ...followed(upstream) } });
      const data = join(folder, "data");
      // Its existence counts, not its content; its owner has to be the server's account.
      await run("cp", ["-p", join(data, "PG_VERSION"), join(data, "standby.signal")]);
      return await LocalPostgres.startOn(installation, folder);
    },
  };
}

const SHUTDOWN_TIMEOUT_MS = 15_000;
const BOOT_TIMEOUT_MS = 30_000;
// Room for the cluster and all the WAL that it keeps by default.
const ROOM_BYTES = 1_500_000_000;
/** Postgres keeps nothing but the header of its interlock in there; the buffers are elsewhere. */
const INTERLOCK_BYTES = 56;

class LocalPostgres extends PostgresHost {
  readonly #installation: PostgresInstallation;
  /** Holds the data, and a backup of it. */
  readonly #folder: string;
  #postmaster: Child | undefined;
  /** While it is paused: all of its processes. A stopped one does not notice that its postmaster died. */
  #stopped: readonly number[] = [];
  #isGone = false;

  private constructor(installation: PostgresInstallation, folder: string, port: number) {
    super({ host: "127.0.0.1", port });
    this.#installation = installation;
    this.#folder = folder;
  }

  /** The folder belongs to the server from here on, and is removed with it. */
  static async startOn(installation: PostgresInstallation, folder: string, wanted?: number): Promise<LocalPostgres> {
    const server = new LocalPostgres(installation, folder, await takePort(wanted));
    await server.#boot().catch(async (cause) => {
      await server.stop();
      throw cause;
    });
    return server;
  }

  async crash(): Promise<void> {
    if (this.#postmaster?.alive === true) {
      await killTree(this.#postmaster.pid);
      await this.#postmaster.waitForExit();
      // It names a process that is certainly dead; if its number is given to another server
      // meanwhile, Postgres would refuse to start again.
      await rm(join(this.#data, "postmaster.pid"), { force: true });
    }
    this.#isPausedNoMore();
  }

  async restart(): Promise<void> {
    // Postgres's fast shutdown: clients are cut, and all that was committed is checkpointed.
    await this.#end("SIGINT");
    await this.#boot();
  }

  override async backUp(): Promise<void> {
    await this.#end("SIGINT");
    await rm(this.#backup, { recursive: true, force: true });
    await run("cp", ["-a", this.#data, this.#backup]);
    await this.#boot();
  }

  override async restoreBackup(): Promise<void> {
    await this.crash();
    await rm(this.#data, { recursive: true });
    await run("cp", ["-a", this.#backup, this.#data]);
    await this.#boot();
  }

  async pause(): Promise<void> {
    if (this.#postmaster?.alive !== true || this.#stopped.length > 0) return;
    this.#stopped = stopTree(this.#postmaster.pid);
    for (const pid of this.#stopped) endsWithUs(pid);
  }

  async resume(): Promise<void> {
    if (this.#stopped.length > 0 && this.#postmaster !== undefined) continueTree(this.#postmaster.pid);
    this.#isPausedNoMore();
  }

  async stop(): Promise<void> {
    if (this.#isGone) return;
    this.#isGone = true;
    await this.#end("SIGQUIT"); // An immediate shutdown, because the data is thrown away anyway.
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 3 });
    returnPort(this.port);
  }

  get #data(): string {
    return join(this.#folder, "data");
  }

  get #backup(): string {
    return join(this.#folder, "backup");
  }

  #isPausedNoMore(): void {
    for (const pid of this.#stopped) if (pid !== this.#postmaster?.pid) outlivesUs(pid);
    this.#stopped = [];
  }

  async #boot(): Promise<void> {
    const { binFolder, account } = this.#installation;
    // The address must stay, so it is no setting in a file that ALTER SYSTEM could change.
    const address = ["-c", "listen_addresses=127.0.0.1", "-c", `port=${this.port}`, "-c", "unix_socket_directories="];
    this.#postmaster = startChild({
      command: join(binFolder, "postgres"),
      args: ["-D", this.#data, ...address],
      cwd: this.#data,
      name: `postgres:${this.port}`,
      ...account,
    });
    await this.#postmaster.says(/database system is ready to accept/, BOOT_TIMEOUT_MS).catch((cause: Error) => {
      throw new Error(`Postgres did not start: ${cause.message}`, { cause });
    });
  }

  /** SIGKILL in the end: a paused server hears no signal, and one waits for its cut-off standby. */
  async #end(signal: "SIGINT" | "SIGQUIT"): Promise<void> {
    if (this.#stopped.length === 0) {
      this.#postmaster?.signal(signal);
      const ended = new AbortController();
      // Aborted: it has ended.
      const late = sleep(SHUTDOWN_TIMEOUT_MS, undefined, { signal: ended.signal }).catch(() => undefined);
      await Promise.race([this.#postmaster?.waitForExit(), late]);
      ended.abort();
    }
    await this.crash();
  }
}

async function newDataFolder(installation: PostgresInstallation, options: HostOptions): Promise<string> {
  const [folder, source] = await Promise.all([newRoot(installation, options), emptyCluster(installation)]);
  const data = join(folder, "data");
  // With owner and mode: Postgres refuses a folder that is not its own or is open to others.
  await run("cp", ["-a", source, data]);
  await appendFile(join(data, "postgresql.conf"), settingsLines(options));
  return folder;
}

/**
 * A folder for one server, still without data; removed when this process ends. Without durability it
 * lies in memory where there is some: a cluster is a thousand files, and creating them on a disk takes
 * from 40 to 700 ms, depending on the file system. Files in memory survive a SIGKILL as well.
 */
export async function newRoot(
  { account }: { readonly account: Account | undefined },
  { durable }: { readonly durable: boolean },
): Promise<string> {
  // Only Linux has it, and containers may have a tiny one.
  const memory = await statfs("/dev/shm").catch(() => undefined);
  const hasRoom = !durable && memory !== undefined && memory.bavail * memory.bsize > ROOM_BYTES;
  const roots = [...new Set([...(hasRoom ? ["/dev/shm"] : []), tmpdir(), "/tmp", "/var/tmp"])];
  for (const root of roots) {
    const isWritable = await access(root, constants.W_OK | constants.X_OK).then(
      () => true,
      () => false,
    );
    if (!isWritable || !(await reachableBy(root, account))) continue;
    const folder = scratchFolder("postgres", root);
    if (account !== undefined) await chmod(folder, 0o711);
    return folder;
  }
  throw new Error(`No folder for the data of a Postgres server: tried ${roots.join(", ")}. Set TMPDIR to a folder that can be written.`);
}

async function emptyCluster({ binFolder, version, account }: PostgresInstallation): Promise<string> {
  const recipe = createHash("sha256").update(JSON.stringify([binFolder, version, account, initdbArguments]));
  const build = async (content: string): Promise<void> => {
    const data = join(content, "data");
    await mkdir(data, { mode: 0o700 });
    if (account !== undefined) await chown(data, account.uid, account.gid);
    // initdb wants a current folder it may look at; ours can be closed to its account.
    const options = { ...account, cwd: data, env: { PATH: process.env.PATH, TZ: "UTC" } };
    await run(join(binFolder, "initdb"), [...initdbArguments, "--pgdata", data], options).catch((cause: Error & { stderr?: string }) => {
      const said = cause.stderr?.trim() || cause.message;
      const remedy = "Postgres only runs as a user that has a name: add one (useradd), or set PALISADE_TEST_PROVIDER=docker.";
      const why = said.includes("could not look up effective user ID") ? `${said}. ${remedy}` : said;
      throw new Error(`no empty cluster could be made: ${why}`, { cause });
    });
  };
  return join(await cached({ name: `postgres-data-${version}-${recipe.digest("hex").slice(0, 8)}`, build, account }), "data");
}

let swept: Promise<void> | undefined;

/**
 * Once per process: gives back the small System V memory segments that killed servers of this account
 * have left, for which the system has room for a few thousand. One whose maker lives, or that a
 * process has attached, stays.
 */
function sweepAbandonedMemory(account: Account | undefined): Promise<void> {
  const uid = account?.uid ?? process.getuid?.();
  const sweep = async (): Promise<void> => {
    // Only Linux shows it; elsewhere nothing can be swept.
    const table = await readFile("/proc/sysvipc/shm", "utf8").catch(() => "");
    const [header = "", ...rows] = table.trim().split("\n");
    const names = header.trim().split(/\s+/);
    for (const row of rows) {
      const fields = row.trim().split(/\s+/);
      const field = (name: string): number => Number(fields[names.indexOf(name)]);
      const isOurs = field("uid") === uid && field("size") === INTERLOCK_BYTES && field("nattch") === 0;
      // Another process sweeps as well, or there is no ipcrm: a later run sweeps these 56 bytes.
      if (isOurs && !isRunning(field("cpid"))) await run("ipcrm", ["-m", String(field("shmid"))]).catch(() => undefined);
    }
  };
  swept ??= sweep();
  return swept;
}
