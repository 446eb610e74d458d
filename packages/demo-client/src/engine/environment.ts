// What scenarios run in: five independent Redis masters, Postgres, a gateway process and the worker
// processes, on free ports of this machine. Everything started here is ended when the environment is
// disposed of.

import { fileURLToPath } from "node:url";
import { AskedChild, Closers, PostgresServer, queryAt, RedisFleet, type Serving, startServing, untilStopped } from "@palisade/testkit";
import type { WorkerCall, WorkerEvent } from "../worker/protocol.js";
import { unfencedTable } from "../worker/store-client.js";

/** Always the compiled one, also when this file is run from its source. */
const program = fileURLToPath(new URL("../../dist/worker/main.js", import.meta.url));

interface GatewayOptions {
  readonly databaseUrl: string;
  readonly redisUrls: readonly string[];
  readonly durability?: "local" | "sync";
  /** Whether a restored database is refused until it was recovered. */
  readonly restoreCheck?: "on" | "off";
}

export function startGateway({ databaseUrl, redisUrls, durability = "local", restoreCheck = "on" }: GatewayOptions): Promise<Serving> {
  return startServing({
    env: {
      DATABASE_URL: databaseUrl,
      PALISADE_REDIS_URLS: redisUrls.join(","),
      PALISADE_DURABILITY: durability,
      PALISADE_RESTORE_CHECK: restoreCheck,
      PALISADE_WRITE_TIMEOUT_MS: "60000", // In a scenario a slow machine must not look like a broken one.
    },
  });
}

export class WorkerProcess extends AskedChild<WorkerCall, WorkerEvent> {
  constructor() {
    super(program, { name: "worker" });
  }

  /** SIGSTOP. Resolves when the process stands still, a moment after the signal was sent. */
  async stop(): Promise<void> {
    if (!this.child.signal("SIGSTOP")) throw new Error(this.child.howItEnded());
    await untilStopped(this.pid);
  }

  /** SIGCONT. */
  resume(): void {
    if (!this.child.signal("SIGCONT")) throw new Error(this.child.howItEnded());
  }
}

/** Processes are started ahead of time, lent to one act after another, and all ended at the end. */
export class WorkerPool implements AsyncDisposable {
  readonly #all = new Set<WorkerProcess>();
  readonly #free: WorkerProcess[] = [];
  #ended = false;

  /** Starts workers until so many are free, so that they are ready when they are needed. */
  prepare(count: number): void {
    while (this.#free.length < count) this.#free.push(this.#start());
  }

  take(): WorkerProcess {
    return this.#free.shift() ?? this.#start();
  }

  /** A reusable worker waits for another act; a spent one is ended. */
  async giveBack(worker: WorkerProcess, state: "reusable" | "spent"): Promise<void> {
    if (state === "reusable" && worker.child.alive && !this.#ended) {
      await worker.ask({ verb: "leaves", args: [] });
      worker.onTold = () => {};
      this.#free.push(worker);
      return;
    }
    this.#all.delete(worker);
    await worker.kill();
  }

  /** Requests under way are answered with an error. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended = true;
    await Promise.all([...this.#all].map((worker) => worker.kill()));
  }

  #start(): WorkerProcess {
    const worker = new WorkerProcess();
    this.#all.add(worker);
    return worker;
  }
}

export interface Environment extends AsyncDisposable {
  readonly redisUrls: readonly string[];
  readonly gatewayUrl: string;
  /** The gateway's, and where controls write. */
  readonly databaseUrl: string;
  readonly workers: WorkerPool;
  /** One line for each thing that was started. */
  readonly description: readonly string[];
  readonly startedInMs: number;
}

/** With a Postgres of its own, unless one is given. */
export async function openEnvironment(given: { readonly databaseUrl?: string } = {}): Promise<Environment> {
  const startedAt = performance.now();
  const opened = new Closers();
  const workers = opened.use(new WorkerPool());
  workers.prepare(2);
  try {
    // Where no Redis can be had, WebAssembly stands in, and the description says so.
    const starting = [
      RedisFleet.start({ nodes: 5, appendfsync: "always", fallback: "wasm" }).then((fleet) => opened.use(fleet)),
      given.databaseUrl === undefined ? PostgresServer.start().then((server) => opened.use(server)) : undefined,
    ] as const;
    await Promise.allSettled(starting); // What did start is closed when the other cannot.
    const [redis, postgres] = await Promise.all(starting).catch((error: Error) => {
      throw new Error(`The servers do not come up: ${error.message}`, { cause: error });
    });
    const databaseUrl = postgres?.url ?? given.databaseUrl ?? "";
    await queryAt(databaseUrl, unfencedTable);
    // Opened last, so closed before the servers, which it would otherwise miss.
    const { url: gatewayUrl } = opened.use(await startGateway({ databaseUrl, redisUrls: redis.urls }));
    return {
      redisUrls: redis.urls,
      gatewayUrl,
      databaseUrl,
      workers,
      description: [redis.description, postgres?.description ?? "Postgres, given", `gateway, a process of its own: ${gatewayUrl}`],
      startedInMs: Math.round(performance.now() - startedAt),
      [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
    };
  } catch (error) {
    await opened[Symbol.asyncDispose]();
    throw error;
  }
}
