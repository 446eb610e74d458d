// Which server a connection is opened to. With one host in the URL that is settled. With several it
// is the one that can be written to: it is looked for before the first connection, and again after
// a connection failed or was lost, because the next one may have to go elsewhere.
import pg from "pg";
import { databaseUrlsOf } from "./database-urls.js";

/** A server that is silent must not delay the connection to another one for longer. */
const LONGEST_LOOK_MS = 2_000;

const LOOK = "select pg_is_in_recovery() or current_setting('transaction_read_only') = 'on' as read_only";
const TIMELINE = "select substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) as timeline";

export class DatabaseHost {
  readonly #urls: readonly string[];
  #known: string | undefined;
  #looking: Promise<string> | undefined;

  constructor(databaseUrl: string) {
    this.#urls = databaseUrlsOf(databaseUrl);
    this.#known = this.#urls.length === 1 ? this.#urls[0] : undefined;
  }

  /** The URL of the server to connect to, where it is known. */
  get known(): string | undefined {
    return this.#known;
  }

  /** For a connection that is made while none is known, and not used: pg has a URL of its own. */
  get first(): string | undefined {
    return this.#urls[0];
  }

  /** The URL of the server to connect to. Fails when none of several can be written to. */
  async url(): Promise<string> {
    if (this.#known !== undefined) return this.#known;
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    });
    return await this.#looking;
  }

  /** A connection failed or was lost: with several hosts the next one is looked for. */
  forget(): void {
    if (this.#urls.length > 1) this.#known = undefined;
  }

  async #look(): Promise<string> {
    const found = await Promise.all(this.#urls.map((url) => lookAt(url)));
    // Where a server that was replaced has not been stopped, two can be written to: the one that
    // was promoted last has the highest timeline.
    const timelines = found.map(({ timeline }) => timeline ?? -1);
    const best = timelines.indexOf(Math.max(...timelines));
    const url = this.#urls[best];
    if (url === undefined || timelines[best] === -1) throw new NoWritableHostError(found.map(({ place, state }) => `${place} ${state}`));
    this.#known = url;
    return url;
  }
}

/** Has the code of a server that refuses to write: both pass when a standby is promoted. */
class NoWritableHostError extends Error {
  readonly code = "25006";
  constructor(hosts: readonly string[]) {
    super(`none of the hosts can be written to: ${hosts.join(", ")}`);
  }
}

interface Look {
  readonly place: string;
  readonly state: string;
  /** Of a server that can be written to. */
  readonly timeline?: number;
}

async function lookAt(url: string): Promise<Look> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: LONGEST_LOOK_MS, query_timeout: LONGEST_LOOK_MS });
  client.on("error", () => {}); // A lost connection also rejects the statement that waits on it.
  const place = `${client.host}:${client.port}`;
  try {
    await client.connect();
    const { rows } = await client.query<{ read_only: boolean }>(LOOK);
    if (rows[0]?.read_only !== false) return { place, state: "is read-only" };
    // Not every server that speaks like Postgres has timelines.
    const timeline = await client.query<{ timeline: string }>(TIMELINE).catch(() => undefined);
    return { place, state: "can be written to", timeline: Number.parseInt(timeline?.rows[0]?.timeline ?? "0", 16) };
  } catch (error) {
    return { place, state: `does not answer (${reasonOf(error)})` };
  } finally {
    void client.end().catch(() => undefined);
  }
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return (error as NodeJS.ErrnoException).code ?? error.message;
}
