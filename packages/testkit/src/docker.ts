// Servers in containers of testcontainers, of the images that docker-compose.yml names, under
// addresses that outlive kills and restarts. An engine on this very Linux gives them the machine's
// own network: they listen on loopback, and reach each other and the proxies there. Elsewhere
// (Docker Desktop, an engine of another machine) the engine publishes their ports.
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, readFile } from "node:fs/promises";
import { connect } from "node:net";
import { homedir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { ContainerRuntimeClient, StartedTestContainer } from "testcontainers";
import { clockShim, SHIM_FILE, WallClock } from "./clock/wall-clock.js";
import {
  followed,
  type HostOptions,
  initdbArguments,
  PostgresHost,
  type PostgresProvider,
  SUPERUSER,
  settingsLines,
} from "./postgres/databases.js";
import { scratchFolder } from "./process/orphans.js";
import { returnPort, takePort } from "./process/port-block.js";
import type { Address } from "./proxy/fault-proxy.js";
import { directivesOf, READY, type RedisProvider, type RedisServer, type RedisServerSpec, realClock, words } from "./redis/server.js";

const READY_TIMEOUT_MS = 60_000;
const ANSWER_TIMEOUT_MS = 5_000;
const composeFile = new URL("../../../docker-compose.yml", import.meta.url);

/** Whether to look for an engine at all; testcontainers is half a second of loading. */
export function hasEngineSocket({ DOCKER_HOST } = process.env): boolean {
  const places = ["/var/run/docker.sock", join(homedir(), ".docker/run/docker.sock"), `/run/user/${process.getuid?.()}/docker.sock`];
  return Boolean(DOCKER_HOST) || places.some((place) => existsSync(place));
}

/** The engine as testcontainers finds it. */
async function engine(): Promise<ContainerRuntimeClient> {
  const { DOCKER_HOST = "" } = process.env;
  try {
    // If nothing listens there, testcontainers would take the next engine that it knows.
    if (/^(unix|tcp|http)/.test(DOCKER_HOST)) {
      const { protocol, hostname, port, pathname } = new URL(DOCKER_HOST);
      const socket = connect(protocol === "unix:" ? { path: pathname } : { host: hostname, port: Number(port) || 2375 });
      await once(socket, "connect", { signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS) }).finally(() => socket.destroy());
    }
    return await (await import("testcontainers")).getContainerRuntimeClient();
  } catch (cause) {
    const remedy = "start one (`sudo systemctl start docker`, Docker Desktop, colima) or point DOCKER_HOST at one";
    throw new Error(`no Docker engine answers (${(cause as Error).message}): ${remedy}`, { cause });
  }
}

/** The image that docker-compose.yml pins, so that what is tested is what is shipped. */
async function composeImage(repository: "redis" | "postgres"): Promise<string> {
  const image = new RegExp(`^\\s*image:\\s*(${repository}:\\S+)\\s*$`, "m").exec(await readFile(composeFile, "utf8"))?.[1];
  if (image === undefined) throw new Error(`docker-compose.yml pins no image of ${repository}`);
  return image;
}

/** Fetched if the engine does not have it. */
async function describeImage(image: string): Promise<string> {
  const { image: images, info } = await engine();
  const { ImageName } = await import("testcontainers");
  const name = ImageName.fromString(image);
  if (!(await images.exists(name))) await images.pull(name);
  return `${image} (containers of ${info.containerRuntime.operatingSystem}, engine ${info.containerRuntime.serverVersion})`;
}

interface Plan {
  /** What the server is called in messages. */
  readonly name: string;
  readonly image: string;
  /** Where it listens when it has a network of its own. */
  readonly innerPort: number;
  /** What it logs once it answers. An answer on the port could be another server's. */
  readonly ready: RegExp;
  readonly command: (listen: Address) => readonly string[];
  readonly entrypoint?: readonly string[];
  /** Files and folders of this machine, read-only, by where they are in the container. */
  readonly binds?: Readonly<Record<string, string>>;
  readonly env?: Record<string, string>;
}

class ServerContainer implements Address {
  host = "";
  readonly port: number;
  readonly #plan: Plan;
  #container: StartedTestContainer | undefined;

  constructor(plan: Plan, port: number) {
    this.#plan = plan;
    this.port = port;
  }

  async start(): Promise<this> {
    const { name, image, innerPort, ready, command, entrypoint, binds = {}, env = {} } = this.#plan;
    const { GenericContainer, Wait } = await import("testcontainers");
    const { host, operatingSystem } = (await engine()).info.containerRuntime;
    this.host = host === "localhost" ? "127.0.0.1" : host; // "localhost" may mean ::1 first, where nothing listens.
    const isHere = process.platform === "linux" && this.host === "127.0.0.1" && operatingSystem !== "Docker Desktop";
    const lines: string[] = [];
    const container = new GenericContainer(image)
      .withCommand([...command(isHere ? this : { host: "0.0.0.0", port: innerPort })])
      .withEnvironment(env)
      .withBindMounts(Object.entries(binds).map(([target, source]) => ({ source, target, mode: "ro" })))
      .withLogConsumer((log) => log.on("data", (line: Buffer | string) => lines.push(String(line).trimEnd())))
      .withWaitStrategy(Wait.forLogMessage(ready))
      .withStartupTimeout(READY_TIMEOUT_MS);
    if (entrypoint !== undefined) container.withEntrypoint([...entrypoint]);
    if (isHere) container.withNetworkMode("host");
    else container.withExposedPorts({ container: innerPort, host: this.port });
    this.#container = await container.start().catch((cause: Error) => {
      throw new Error(`${name} did not start on port ${this.port}: ${cause.message}\n${lines.slice(-20).join("\n  ")}`, { cause });
    });
    return this;
  }

  /** SIGKILL to its first process, which takes all others with it. */
  async kill(): Promise<void> {
    const handle = await this.handle();
    if (!(await handle.inspect()).State.Running) return;
    await handle.kill();
    await handle.wait();
  }

  /** "kept": the same container with what is on its disk; "forgotten": another one in its place. */
  async startAgain(memory: "kept" | "forgotten"): Promise<void> {
    if (memory === "kept") return await this.#existing.restart({ timeout: 0 });
    await this.#remove();
    await this.start();
  }

  async pause(): Promise<void> {
    const handle = await this.handle();
    if (!(await handle.inspect()).State.Paused) await handle.pause();
  }

  async resume(): Promise<void> {
    const handle = await this.handle();
    if ((await handle.inspect()).State.Paused) await handle.unpause();
  }

  /** For good: it goes with its disk. */
  async stop(): Promise<void> {
    if (this.#container === undefined) return;
    await this.#remove();
    returnPort(this.port);
  }

  /** For what testcontainers does not offer. */
  async handle(): Promise<ReturnType<ContainerRuntimeClient["container"]["getById"]>> {
    return (await engine()).container.getById(this.#existing.getId());
  }

  get #existing(): StartedTestContainer {
    if (this.#container === undefined) throw new Error(`${this.#plan.name} has been stopped for good`);
    return this.#container;
  }

  async #remove(): Promise<void> {
    const handle = await this.handle();
    this.#container = undefined;
    await handle.remove({ force: true, v: true });
  }
}

export const dockerRedis: RedisProvider = {
  name: "docker",
  describe: async () => describeImage(await composeImage("redis")),
  start: async (spec) => {
    const { clock, ...files } = spec.clock === "real" ? { clock: realClock } : await clockIn(spec.name);
    const plan: Plan = {
      name: spec.name,
      image: await composeImage("redis"),
      innerPort: 6379,
      ready: READY,
      // A client that comes through a published port does not come from the server's own loopback.
      command: ({ host, port }) => [
        "redis-server",
        ...words({ bind: host, port: String(port), "protected-mode": "no", ...directivesOf(spec) }),
      ],
      ...files,
    };
    return await new DockerRedis(plan, await takePort(), clock).start();
  },
};

class DockerRedis extends ServerContainer implements RedisServer {
  readonly pid = undefined;
  readonly clock: RedisServer["clock"];

  constructor(plan: Plan, port: number, clock: RedisServer["clock"]) {
    super(plan, port);
    this.clock = clock;
  }

  async restart({ memory }: { readonly memory: "kept" | "forgotten" }): Promise<void> {
    await this.kill();
    await this.startAgain(memory);
  }
}

/** Library and offset are files of this machine, so an engine elsewhere moves no clock. */
async function clockIn(name: RedisServerSpec["name"]): Promise<Pick<RedisServer, "clock"> & Pick<Plan, "binds" | "env">> {
  const folder = scratchFolder(`clock-${name}`);
  await chmod(folder, 0o755); // The server's account in the container is another.
  const [shim, clock] = [await clockShim(), await WallClock.in(join(folder, "offset"))];
  if ("missing" in shim || "missing" in clock)
    return { clock: { fixed: `cannot be moved here: ${"missing" in shim ? shim.missing : ""}` } };
  return {
    clock,
    binds: { "/palisade-clock": folder, [`/palisade-shim/${SHIM_FILE}`]: join(shim.folder, SHIM_FILE) },
    env: { PALISADE_CLOCK_FILE: "/palisade-clock/offset", LD_PRELOAD: `/palisade-shim/${SHIM_FILE}` },
  };
}

const DATA = "/var/lib/postgresql/data";
const emptyCluster = `initdb ${initdbArguments.map((argument) => `"${argument}"`).join(" ")} --pgdata ${DATA} > /dev/null
echo "host all,replication all all trust" >> ${DATA}/pg_hba.conf`;

export const dockerPostgres = containersOf(() => composeImage("postgres"));
/** Not in the compose file, which has one server; its entrypoint is not used here either. */
export const dockerCitus = containersOf(async () => "citusdata/citus:13.2.0");

function containersOf(image: () => Promise<string>): PostgresProvider {
  const start = async (name: string, options: HostOptions, fill: string): Promise<PostgresHost> => {
    const plan: Plan = {
      name,
      image: await image(),
      innerPort: 5432,
      ready: /database system is ready to accept/,
      entrypoint: ["bash", "-c"],
      command: (listen) => [scriptOf(options, fill, listen)],
    };
    return new DockerPostgres(await new ServerContainer(plan, await takePort()).start());
  };
  return {
    describe: async () => describeImage(await image()),
    start: (options) => start("postgres", options, emptyCluster),
    startStandby: (options, upstream) => {
      const backup = `pg_basebackup --host ${upstream.host} --port ${upstream.port} --username ${SUPERUSER} --pgdata ${DATA} --checkpoint fast --no-sync
touch ${DATA}/standby.signal`;
      // A base backup brings the primary's settings along; with the standby's name among them the
      // promoted server would wait for itself.
      const settings = { synchronous_standby_names: "", ...options.settings, ...followed(upstream) };
      return start("postgres standby", { ...options, settings }, backup);
    },
  };
}

class DockerPostgres extends PostgresHost {
  readonly #container: ServerContainer;

  constructor(container: ServerContainer) {
    super(container);
    this.#container = container;
  }

  crash(): Promise<void> {
    return this.#container.kill();
  }

  async restart(): Promise<void> {
    // Postgres' fast shutdown: clients are cut, and all that was committed is checkpointed.
    const handle = await this.#container.handle();
    if (!(await handle.inspect()).State.Paused) await handle.kill({ signal: "SIGINT" }).catch(() => undefined); // It may be down.
    for (let look = 0; look < 300 && (await handle.inspect()).State.Running; look += 1) await sleep(50);
    await this.#container.kill();
    await this.#container.startAgain("kept");
  }

  pause(): Promise<void> {
    return this.#container.pause();
  }

  resume(): Promise<void> {
    return this.#container.resume();
  }

  stop(): Promise<void> {
    return this.#container.stop();
  }
}

/**
 * What the container runs at every start. The image's own entrypoint would start the server twice,
 * which takes longer than all the rest.
 */
function scriptOf(options: HostOptions, fill: string, { host, port }: Address): string {
  return `set -e
as_postgres="setpriv --reuid postgres --regid postgres --init-groups"
if [ ! -s ${DATA}/PG_VERSION ]; then
mkdir -p ${DATA}
chown postgres ${DATA}
chmod 700 ${DATA}
$as_postgres bash -ec '${fill}'
cat >> ${DATA}/postgresql.conf <<'SETTINGS'
${settingsLines(options)}SETTINGS
fi
cd ${DATA}
exec $as_postgres postgres -D ${DATA} -c listen_addresses='${host}' -c port=${port} -c unix_socket_directories=`;
}
