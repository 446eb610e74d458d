// Runs Postgres servers as containers of the compose file's image. It must not know about databases.
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { settingsLines, settingsOf } from "../postgres/configuration.js";
import { initdbArguments, SUPERUSER } from "../postgres/data-folder.js";
import { type Address, type PostgresHost, type PostgresProvider, STANDBY_NAME } from "../postgres/provider.js";
import type { Place } from "./container.js";
import { describeImage } from "./engine.js";
import { composeImage } from "./images.js";
import { ServerContainer } from "./server-container.js";

const postgresPort = 5432;
const readyTimeoutMs = 60_000;
const pollMs = 20;
// A stranger on the port may not answer at all.
const onePatienceMs = 2_000;
const data = "/var/lib/postgresql/data";

export const dockerPostgres: PostgresProvider = {
  describe: async () => describeImage(await composeImage("postgres")),
  start: async (options) => DockerPostgres.start({ name: "postgres", fill: () => emptyCluster, settings: settingsOf(options) }),
  startStandby: async (options, upstream) =>
    DockerPostgres.start({
      name: "postgres standby",
      fill: (place) => baseBackup(upstream, place),
      settings: { ...follow(upstream), ...settingsOf(options) },
    }),
};

interface Recipe {
  readonly name: string;
  /** Makes the cluster, as the server's account. */
  readonly fill: (place: Place) => string;
  readonly settings: Readonly<Record<string, string>>;
}

class DockerPostgres implements PostgresHost {
  readonly #container: ServerContainer;

  private constructor(container: ServerContainer) {
    this.#container = container;
  }

  static async start(recipe: Recipe): Promise<DockerPostgres> {
    const image = await composeImage("postgres");
    const mark = `palisade-${randomUUID()}`;
    const container = await ServerContainer.start({
      name: recipe.name,
      container: (place) => ({
        image,
        innerPort: postgresPort,
        entrypoint: ["bash", "-c"],
        command: [scriptOf(recipe, { place, mark })],
      }),
      untilReady: (address, failure) => untilReady(address, { mark, failure }),
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

const emptyCluster = `initdb ${initdbArguments.map((argument) => `"${argument}"`).join(" ")} --pgdata ${data} > /dev/null
echo "host all,replication all all trust" >> ${data}/pg_hba.conf`;

function baseBackup({ host, port }: Address, { network }: Place): string {
  if (network === "own")
    throw new Error("a standby in a container needs an engine that runs on this Linux itself: its way to the primary is on our loopback");
  return `pg_basebackup --host ${host} --port ${port} --username ${SUPERUSER} --pgdata ${data} --checkpoint fast --no-sync
touch ${data}/standby.signal`;
}

/** A base backup brings the primary's settings along; with its standby's name the promoted server would wait for itself. */
function follow({ host, port }: Address): Record<string, string> {
  return {
    synchronous_standby_names: "",
    primary_conninfo: `host=${host} port=${port} user=${SUPERUSER} application_name=${STANDBY_NAME}`,
    wal_retrieve_retry_interval: "20ms",
  };
}

/** What the container runs, at its first start and at every later one. The image's own entrypoint would start the server twice, which takes longer than all the rest.
 * The settings go to the file, and not to the command line, so that a test can still change them with ALTER SYSTEM. */
function scriptOf({ fill, settings }: Recipe, { place, mark }: { readonly place: Place; readonly mark: string }): string {
  const address =
    place.network === "shared"
      ? { listen_addresses: "127.0.0.1", port: String(place.port) }
      : { listen_addresses: "*", port: String(postgresPort) };
  const flags = Object.entries({ ...address, unix_socket_directories: "", cluster_name: mark }).map(
    ([name, value]) => `-c ${name}='${value}'`,
  );
  return `set -e
as_postgres="setpriv --reuid postgres --regid postgres --init-groups"
if [ ! -s ${data}/PG_VERSION ]; then
mkdir -p ${data}
chown postgres ${data}
chmod 700 ${data}
$as_postgres bash -ec '${fill(place)}'
cat >> ${data}/postgresql.conf <<'SETTINGS'
${settingsLines(settings)}SETTINGS
fi
cd ${data}
exec $as_postgres postgres -D ${data} ${flags.join(" ")}`;
}

interface Waiting {
  /** The name that only this cluster has: another server may sit on the port. */
  readonly mark: string;
  readonly failure: () => string | undefined;
}

async function untilReady({ host, port }: Address, { mark, failure }: Waiting): Promise<void> {
  const givenUpAt = performance.now() + readyTimeoutMs;
  for (;;) {
    const answer = await clusterName(`postgres://${SUPERUSER}@${host}:${port}/postgres`);
    if (answer === mark) return;
    const why = failure();
    if (why !== undefined) throw new Error(why);
    if (performance.now() > givenUpAt) throw new Error(`not ready after ${readyTimeoutMs} ms; the last answer was ${answer}`);
    await sleep(pollMs);
  }
}

/** The name of the cluster that answers, or why none does. */
async function clusterName(connectionString: string): Promise<string> {
  const client = new pg.Client({ connectionString, connectionTimeoutMillis: onePatienceMs, query_timeout: onePatienceMs });
  client.on("error", () => {}); // A lost connection also rejects what waits on it; without a listener it would end the process.
  try {
    await client.connect();
    const { rows } = await client.query<{ name: string }>("select current_setting('cluster_name') as name");
    return rows[0]?.name ?? "nothing";
  } catch (cause) {
    return (cause as Error).message;
  } finally {
    await client.end();
  }
}
