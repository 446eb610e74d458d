// Runs Postgres servers as containers of the compose file's image. It must not know about databases.

import { setTimeout as sleep } from "node:timers/promises";
import type { TestContainer } from "testcontainers";
import { settingsLines, settingsOf } from "../postgres/configuration.js";
import { superuser } from "../postgres/data-folder.js";
import { withClient } from "../postgres/databases.js";
import { type Address, type HostOptions, type PostgresHost, type PostgresProvider, standbyName } from "../postgres/provider.js";
import { describeImage } from "./engine.js";
import { composeImage } from "./images.js";
import { type ContainerPlan, ServerContainer } from "./server-container.js";

const postgresPort = 5432;
const readyTimeoutMs = 60_000;
const pollMs = 50;

export const dockerPostgres: PostgresProvider = {
  start: async (options) => DockerPostgres.start({ ...(await common()), ...primaryPlan(options) }),
  startStandby: async (options, upstream) => DockerPostgres.start({ ...(await common()), ...standbyPlan(options, upstream) }),
};

async function common(): Promise<Pick<ContainerPlan, "image" | "untilReady">> {
  return { image: await composeImage("postgres"), untilReady };
}

class DockerPostgres implements PostgresHost {
  readonly description: string;
  readonly #container: ServerContainer;

  private constructor(container: ServerContainer, description: string) {
    this.#container = container;
    this.description = description;
  }

  static async start(plan: ContainerPlan): Promise<DockerPostgres> {
    return new DockerPostgres(await ServerContainer.start(plan), await describeImage(plan.image));
  }

  get host(): string {
    return this.#container.host;
  }

  get port(): number {
    return this.#container.port;
  }

  /** The first process of a container takes all others with it. */
  crash(): Promise<void> {
    return this.#container.end("SIGKILL");
  }

  async restart(): Promise<void> {
    await this.#container.end("SIGINT");
    await this.#container.startAgain();
  }

  pause(): Promise<void> {
    return this.#container.pause();
  }

  resume(): Promise<void> {
    return this.#container.resume();
  }

  stop(): Promise<void> {
    return this.#container.remove();
  }
}

/** The image runs this once, when it makes the cluster. As a file, and not as arguments, so that a test can still change the settings with ALTER SYSTEM. */
function firstStart(options: HostOptions): string {
  return `cat >> "$PGDATA/postgresql.conf" <<'SETTINGS'\n${settingsLines(settingsOf(options))}SETTINGS
echo "host replication all all trust" >> "$PGDATA/pg_hba.conf"\n`;
}

function primaryPlan(options: HostOptions): Pick<ContainerPlan, "listens" | "equip"> {
  return {
    listens: { in: "own network", port: postgresPort },
    equip: (container): TestContainer =>
      container
        .withEnvironment({
          POSTGRES_USER: superuser,
          POSTGRES_HOST_AUTH_METHOD: "trust",
          POSTGRES_INITDB_ARGS: "--encoding UTF8 --locale C",
        })
        .withCopyContentToContainer([{ content: firstStart(options), target: "/docker-entrypoint-initdb.d/palisade.sh", mode: 0o755 }]),
  };
}

/** On the host's network, because its way to the primary is a proxy on this machine's loopback. */
function standbyPlan(options: HostOptions, upstream: Address): Pick<ContainerPlan, "listens" | "equip"> {
  const follows = {
    primary_conninfo: `host=${upstream.host} port=${upstream.port} user=${superuser} application_name=${standbyName}`,
    wal_retrieve_retry_interval: "20ms",
  };
  return {
    listens: { in: "host network" },
    equip: (container, hostPort): TestContainer => {
      const address = settingsLines({ port: String(hostPort), listen_addresses: "127.0.0.1", unix_socket_directories: "" });
      const script = `set -e
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  mkdir -p "$PGDATA" && chown postgres "$PGDATA" && chmod 700 "$PGDATA"
  gosu postgres pg_basebackup --host ${upstream.host} --port ${upstream.port} --username ${superuser} --pgdata "$PGDATA" --checkpoint fast
  cat >> "$PGDATA/postgresql.conf" <<'SETTINGS'
${settingsLines(settingsOf(options))}${settingsLines(follows)}${address}SETTINGS
  gosu postgres touch "$PGDATA/standby.signal"
fi
exec gosu postgres postgres
`;
      return container.withEntrypoint(["bash"]).withCommand(["-c", script]);
    },
  };
}

async function untilReady({ host, port }: Address): Promise<void> {
  const givenUpAt = performance.now() + readyTimeoutMs;
  for (;;) {
    try {
      await withClient(`postgres://${superuser}@${host}:${port}/postgres`, (client) => client.query("select 1"));
      return;
    } catch (cause) {
      if (performance.now() > givenUpAt) throw new Error(`no answer within ${readyTimeoutMs} ms: ${(cause as Error).message}`, { cause });
      await sleep(pollMs);
    }
  }
}
