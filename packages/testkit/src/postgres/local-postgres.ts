// One Postgres server of this machine: its data folder, its port, and the ways to break it.
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Child } from "../process/child.js";
import { keepFolder } from "../process/living-children.js";
import { returnPort, takePort } from "../process/port-block.js";
import { thisCitus } from "../resolve/citus.js";
import { type PostgresInstallation, thisPostgres } from "../resolve/postgres.js";
import { run } from "../resolve/postgres-cache.js";
import { sweepAbandonedMemory } from "./abandoned-memory.js";
import { boot, PortTaken } from "./boot.js";
import { type DataFolder, makeStandby, newDataFolder } from "./data-folder.js";
import { Frozen, killTree } from "./process-tree.js";
import type { PostgresHost, PostgresProvider } from "./provider.js";

const PORT_ATTEMPTS = 10;
const PORT_TIMEOUT_MS = 5_000;
const SHUTDOWN_TIMEOUT_MS = 3_000;

function localServers(find: () => Promise<PostgresInstallation>): PostgresProvider {
  return {
    describe: async () => (await find()).description,
    start: async (options) => {
      const installation = await find();
      const [folder] = await Promise.all([newDataFolder(installation, options), sweepAbandonedMemory(installation.account?.uid)]);
      return await LocalPostgres.startOn(installation, folder, options.port);
    },
    startStandby: async (options, upstream) => {
      const installation = await find();
      const folder = await newDataFolder(installation, options);
      await makeStandby(folder, upstream);
      return await LocalPostgres.startOn(installation, folder);
    },
  };
}

export const localPostgres = localServers(thisPostgres);

/** Of the installation that has the extension Citus. */
export const localCitus = localServers(thisCitus);

class LocalPostgres implements PostgresHost {
  readonly host = "127.0.0.1";
  readonly port: number;
  readonly #installation: PostgresInstallation;
  readonly #folder: DataFolder;
  #postmaster: Child;
  #frozen: Frozen | undefined;
  #stopped = false;

  private constructor(
    installation: PostgresInstallation,
    folder: DataFolder,
    running: { readonly port: number; readonly postmaster: Child },
  ) {
    this.#installation = installation;
    this.#folder = folder;
    this.port = running.port;
    this.#postmaster = running.postmaster;
  }

  /** The folder belongs to the server from here on, and is removed with it. */
  static async startOn(installation: PostgresInstallation, folder: DataFolder, wanted?: number): Promise<LocalPostgres> {
    for (let attempt = 1; ; attempt += 1) {
      const port = wanted ?? (await takePort());
      try {
        const postmaster = await boot({ installation, data: folder.data, port });
        return new LocalPostgres(installation, folder, { port, postmaster });
      } catch (error) {
        // By a program that does not know of our claim.
        if (error instanceof PortTaken && attempt < PORT_ATTEMPTS && wanted === undefined) continue;
        await removeFolder(folder.root);
        throw error;
      }
    }
  }

  async crash(): Promise<void> {
    if (this.#postmaster.alive) {
      await killTree(this.#postmaster.pid);
      await this.#postmaster.waitForExit();
      // It names a process that is certainly dead; if its number is given to another server
      // meanwhile, Postgres would refuse to start again.
      await rm(join(this.#folder.data, "postmaster.pid"), { force: true });
    }
    // Not earlier: if we die in between, its keeper still has to end the stopped ones.
    this.#frozen?.forget();
    this.#frozen = undefined;
  }

  async restart(): Promise<void> {
    // Postgres's fast shutdown: clients are cut, and all that was committed is checkpointed.
    await this.#end("SIGINT");
    await this.#bootHere();
  }

  async backUp(): Promise<void> {
    await this.#end("SIGINT");
    await rm(this.#backup, { recursive: true, force: true });
    await run("cp", ["-a", this.#folder.data, this.#backup]);
    await this.#bootHere();
  }

  async restoreBackup(): Promise<void> {
    await this.crash();
    await rm(this.#folder.data, { recursive: true });
    await run("cp", ["-a", this.#backup, this.#folder.data]);
    await this.#bootHere();
  }

  get #backup(): string {
    return join(this.#folder.root, "backup");
  }

  async #bootHere(): Promise<void> {
    const givenUpAt = performance.now() + PORT_TIMEOUT_MS;
    for (;;) {
      try {
        this.#postmaster = await boot({ installation: this.#installation, data: this.#folder.data, port: this.port });
        return;
      } catch (error) {
        // The address must not change: a program that took the port meanwhile is waited for.
        if (!(error instanceof PortTaken) || performance.now() > givenUpAt) throw error;
        await sleep(20);
      }
    }
  }

  async pause(): Promise<void> {
    if (this.#postmaster.alive) this.#frozen ??= new Frozen(this.#postmaster.pid);
  }

  async resume(): Promise<void> {
    this.#frozen?.thaw();
    this.#frozen = undefined;
  }

  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    await this.#end("SIGQUIT"); // An immediate shutdown, because the data is thrown away anyway.
    await removeFolder(this.#folder.root);
    returnPort(this.port);
  }

  /** SIGKILL in the end: a paused server hears no signal, and one waits for its cut-off standby. */
  async #end(signal: "SIGINT" | "SIGQUIT"): Promise<void> {
    if (this.#frozen === undefined) {
      this.#postmaster.signal(signal);
      const ended = new AbortController();
      // Aborted: it has ended.
      const late = sleep(SHUTDOWN_TIMEOUT_MS, undefined, { signal: ended.signal }).catch(() => undefined);
      await Promise.race([this.#postmaster.waitForExit(), late]);
      ended.abort();
    }
    await this.crash();
  }
}

async function removeFolder(root: string): Promise<void> {
  await rm(root, { recursive: true, force: true, maxRetries: 3 });
  keepFolder(root); // There is nothing left to remove at exit.
}
