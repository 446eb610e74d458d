// One Postgres server as processes of this machine: its data folder, its port, and the ways to break it. It must not know about databases or replication.
import { rm } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { Child } from "../process/child.js";
import { keepFolder } from "../process/living-children.js";
import { returnPort, takePort } from "../process/port-block.js";
import { type PostgresInstallation, resolvePostgres } from "../resolve/postgres.js";
import { sweepAbandonedMemory } from "./abandoned-memory.js";
import { boot, PortTaken } from "./boot.js";
import { type DataFolder, newDataFolder } from "./data-folder.js";
import { Frozen } from "./frozen.js";
import type { HostOptions, PostgresHost } from "./host.js";
import { killTree } from "./process-tree.js";

const portAttempts = 10;
const portPatienceMs = 5_000;

export interface LocalOrigin {
  readonly installation: PostgresInstallation;
  readonly folder: DataFolder;
}

export class LocalPostgres implements PostgresHost {
  readonly host = "127.0.0.1";
  #postmaster: Child;
  #frozen: Frozen | undefined;

  private constructor(
    readonly origin: LocalOrigin,
    readonly options: HostOptions,
    readonly port: number,
    postmaster: Child,
  ) {
    this.#postmaster = postmaster;
  }

  static async start(options: HostOptions): Promise<LocalPostgres> {
    const installation = await resolvePostgres();
    const [folder] = await Promise.all([newDataFolder(installation, options), sweepAbandonedMemory(installation.account?.uid)]);
    return await LocalPostgres.startOn({ installation, folder }, options);
  }

  /** Starts on data that is already there. The folder belongs to the server from here on, and is removed with it. */
  static async startOn(origin: LocalOrigin, options: HostOptions): Promise<LocalPostgres> {
    const { installation, folder } = origin;
    for (let attempt = 1; ; attempt += 1) {
      const port = await takePort();
      try {
        return new LocalPostgres(origin, options, port, await boot({ ...options, installation, data: folder.data, port }));
      } catch (error) {
        if (error instanceof PortTaken && attempt < portAttempts) continue;
        await removeFolder(folder.root);
        throw error;
      }
    }
  }

  get notice(): string {
    return this.origin.installation.notice;
  }

  get pid(): number {
    return this.#postmaster.pid;
  }

  async crash(): Promise<void> {
    this.#frozen?.forget();
    this.#frozen = undefined;
    if (!this.#postmaster.alive) return;
    await killTree(this.#postmaster.pid);
    await this.#postmaster.waitForExit();
  }

  async restart(): Promise<void> {
    if (this.#frozen !== undefined) await this.crash();
    await this.#postmaster.stop({ signal: "SIGINT" }); // Postgres calls this a fast shutdown: clients are cut, and what they were told is checkpointed.
    const { installation, folder } = this.origin;
    const givenUpAt = performance.now() + portPatienceMs;
    for (;;) {
      try {
        this.#postmaster = await boot({ ...this.options, installation, data: folder.data, port: this.port });
        return;
      } catch (error) {
        // The address must not change, so there is nothing to do but to wait for whoever probed our port meanwhile.
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
    if (this.#frozen !== undefined) await this.crash();
    await this.#postmaster.stop({ signal: "SIGQUIT" }); // An immediate shutdown: the data is thrown away anyway.
    await removeFolder(this.origin.folder.root);
    returnPort(this.port);
  }
}

async function removeFolder(root: string): Promise<void> {
  await rm(root, { recursive: true, force: true, maxRetries: 3 });
  keepFolder(root); // There is nothing left to remove at exit.
}
