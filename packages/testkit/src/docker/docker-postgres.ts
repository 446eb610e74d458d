// Runs Postgres servers as containers of the compose file's image.
import { settingsLines, settingsOf } from "../postgres/boot.js";
import { initdbArguments, SUPERUSER } from "../postgres/data-folder.js";
import { type Address, type PostgresHost, type PostgresProvider, STANDBY_NAME } from "../postgres/provider.js";
import { composeImage, describeImage } from "./engine.js";
import { type Place, ServerContainer } from "./server-container.js";

const POSTGRES_PORT = 5432;
const DATA = "/var/lib/postgresql/data";

function containersOf(image: () => Promise<string>): PostgresProvider {
  return {
    describe: async () => describeImage(await image()),
    start: (options) => startServer({ name: "postgres", image, fill: () => emptyCluster, settings: settingsOf(options) }),
    startStandby: (options, upstream) =>
      startServer({
        name: "postgres standby",
        image,
        fill: (place) => baseBackup(upstream, place),
        settings: { ...follow(upstream), ...settingsOf(options) },
      }),
  };
}

export const dockerPostgres = containersOf(() => composeImage("postgres"));

/** Not in the compose file, which has one server; its entrypoint is not used here either. */
const CITUS_IMAGE = "citusdata/citus:13.2.0";
export const dockerCitus = containersOf(async () => CITUS_IMAGE);

interface Recipe {
  readonly name: string;
  readonly image: () => Promise<string>;
  /** Makes the cluster, as the server's account. */
  readonly fill: (place: Place) => string;
  readonly settings: Readonly<Record<string, string>>;
}

async function startServer(recipe: Recipe): Promise<DockerPostgres> {
  return await new DockerPostgres({
    name: recipe.name,
    image: await recipe.image(),
    innerPort: POSTGRES_PORT,
    readyLine: /database system is ready to accept/,
    program: (place) => ({ Entrypoint: ["bash", "-c"], Cmd: [scriptOf(recipe, place)] }),
  }).start();
}

class DockerPostgres extends ServerContainer implements PostgresHost {
  async crash(): Promise<void> {
    await this.kill();
  }

  async restart(): Promise<void> {
    // Postgres' fast shutdown: clients are cut, and all that was committed is checkpointed.
    await this.interrupt();
    await this.startAgain("kept");
  }
}

const emptyCluster = `initdb ${initdbArguments.map((argument) => `"${argument}"`).join(" ")} --pgdata ${DATA} > /dev/null
echo "host all,replication all all trust" >> ${DATA}/pg_hba.conf`;

function baseBackup({ host, port }: Address, { network }: Place): string {
  if (network === "own")
    throw new Error("a standby in a container needs an engine on this Linux: the proxy before its primary listens on loopback");
  return `pg_basebackup --host ${host} --port ${port} --username ${SUPERUSER} --pgdata ${DATA} --checkpoint fast --no-sync
touch ${DATA}/standby.signal`;
}

/**
 * A base backup brings the primary's settings along; with the standby's name among them the
 * promoted server would wait for itself.
 */
function follow({ host, port }: Address): Record<string, string> {
  return {
    synchronous_standby_names: "",
    primary_conninfo: `host=${host} port=${port} user=${SUPERUSER} application_name=${STANDBY_NAME}`,
    wal_retrieve_retry_interval: "20ms",
  };
}

/**
 * What the container runs at every start. The image's own entrypoint would start the server twice,
 * which takes longer than all the rest. The settings stand in the file and not on the command line,
 * so that a test can change them with ALTER SYSTEM.
 */
function scriptOf({ fill, settings }: Recipe, place: Place): string {
  const [address, port] = place.network === "shared" ? ["127.0.0.1", place.port] : ["*", POSTGRES_PORT];
  return `set -e
as_postgres="setpriv --reuid postgres --regid postgres --init-groups"
if [ ! -s ${DATA}/PG_VERSION ]; then
mkdir -p ${DATA}
chown postgres ${DATA}
chmod 700 ${DATA}
$as_postgres bash -ec '${fill(place)}'
cat >> ${DATA}/postgresql.conf <<'SETTINGS'
${settingsLines(settings)}SETTINGS
fi
cd ${DATA}
exec $as_postgres postgres -D ${DATA} -c listen_addresses='${address}' -c port=${port} -c unix_socket_directories=`;
}
