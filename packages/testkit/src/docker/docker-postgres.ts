// Runs Postgres servers as containers of the compose file's image. It must not know about databases.
import { setTimeout as sleep } from "node:timers/promises";
import { settingsLines, settingsOf } from "../postgres/configuration.js";
import { initdbArguments, superuser } from "../postgres/data-folder.js";
import { withClient } from "../postgres/databases.js";
import { type Address, type PostgresHost, type PostgresProvider, standbyName } from "../postgres/provider.js";
import type { Listening } from "./container.js";
import { describeImage } from "./engine.js";
import { composeImage } from "./images.js";
import { ServerContainer } from "./server-container.js";

const postgresPort = 5432;
const readyTimeoutMs = 60_000;
const pollMs = 20;
const data = "/var/lib/postgresql/data";

export const dockerPostgres: PostgresProvider = {
  describe: async () => describeImage(await composeImage("postgres")),
  start: async (options) => DockerPostgres.start({ ...primary, settings: settingsOf(options) }),
  startStandby: async (options, upstream) =>
    DockerPostgres.start({ ...standbyOf(upstream), settings: { ...follow(upstream), ...settingsOf(options) } }),
};

interface Recipe {
  readonly name: string;
  readonly listens: Listening;
  /** Makes the cluster, as the server's account. */
  readonly fill: string;
  readonly settings: Readonly<Record<string, string>>;
}

class DockerPostgres implements PostgresHost {
  readonly #container: ServerContainer;

  private constructor(container: ServerContainer) {
    this.#container = container;
  }

  static async start(recipe: Recipe): Promise<DockerPostgres> {
    const image = await composeImage("postgres");
    const container = await ServerContainer.start({
      name: recipe.name,
      container: ({ port }) => ({
        image,
        listens: recipe.listens,
        entrypoint: ["bash", "-c"],
        command: [scriptOf(recipe, port)],
      }),
      untilReady,
    });
    return new DockerPostgres(container);
  }

  get host(): string {
    return this.#container.host;
  }

  get port(): number {
    return this.#container.port;
  }

  /** The first process of a container takes all others with it. A paused one is let go in the same moment, and may still do what it was asked meanwhile. */
  async crash(): Promise<void> {
    await this.#container.kill();
  }

  async restart(): Promise<void> {
    await this.#container.interrupt(); // Postgres calls this a fast shutdown: clients are cut, and all that was committed is checkpointed.
    await this.#container.startAgain();
  }

  async pause(): Promise<void> {
    await this.#container.pause();
  }

  async resume(): Promise<void> {
    await this.#container.resume();
  }

  async stop(): Promise<void> {
    await this.#container.remove();
  }
}

const primary: Omit<Recipe, "settings"> = {
  name: "postgres",
  listens: { in: "own network", port: postgresPort },
  fill: `initdb ${initdbArguments.map((argument) => `'${argument}'`).join(" ")} --pgdata ${data} > /dev/null
echo "host all,replication all all trust" >> ${data}/pg_hba.conf`,
};

/** On this machine's network, because its way to the primary is a proxy on this machine's loopback. */
function standbyOf({ host, port }: Address): Omit<Recipe, "settings"> {
  return {
    name: "postgres standby",
    listens: { in: "host network" },
    fill: `pg_basebackup --host ${host} --port ${port} --username ${superuser} --pgdata ${data} --checkpoint fast --no-sync
touch ${data}/standby.signal`,
  };
}

/** A base backup brings the primary's settings along; with its standby's name the promoted server would wait for itself. */
function follow({ host, port }: Address): Record<string, string> {
  return {
    synchronous_standby_names: "",
    primary_conninfo: `host=${host} port=${port} user=${superuser} application_name=${standbyName}`,
    wal_retrieve_retry_interval: "20ms",
  };
}

/** What the container runs, at its first start and at every later one. The image's own entrypoint would start the server twice, which takes longer than all the rest.
 * The settings go to the file, and not to the command line, so that a test can still change them with ALTER SYSTEM. */
function scriptOf({ listens, fill, settings }: Recipe, hostPort: number): string {
  const address =
    listens.in === "host network"
      ? { listen_addresses: "127.0.0.1", port: String(hostPort) }
      : { listen_addresses: "*", port: String(listens.port) };
  const flags = Object.entries({ ...address, unix_socket_directories: "" }).map(([name, value]) => `-c ${name}='${value}'`);
  return `set -e
as_postgres() { setpriv --reuid postgres --regid postgres --init-groups "$@"; }
if [ ! -s ${data}/PG_VERSION ]; then
mkdir -p ${data}
chown postgres ${data}
chmod 700 ${data}
as_postgres bash -ec '${fill.replaceAll("'", `'\\''`)}'
cat >> ${data}/postgresql.conf <<'SETTINGS'
${settingsLines(settings)}SETTINGS
fi
cd ${data}
exec setpriv --reuid postgres --regid postgres --init-groups postgres -D ${data} ${flags.join(" ")}`;
}

async function untilReady({ host, port }: Address, failure: () => string | undefined): Promise<void> {
  const givenUpAt = performance.now() + readyTimeoutMs;
  for (;;) {
    try {
      await withClient(`postgres://${superuser}@${host}:${port}/postgres`, (client) => client.query("select 1"));
      return;
    } catch (cause) {
      const why = failure();
      if (why !== undefined) throw new Error(why, { cause });
      if (performance.now() > givenUpAt) throw new Error(`no answer within ${readyTimeoutMs} ms: ${(cause as Error).message}`, { cause });
      await sleep(pollMs);
    }
  }
}
