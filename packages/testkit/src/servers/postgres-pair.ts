// A primary and the standby that streams from it, with a proxy between them that can break their
// link. A promotion leaves the primary running: whether two servers then accept writes is the
// test's choice.
import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { type PostgresHost, STANDBY_NAME } from "../postgres/provider.js";
import { withClient } from "../postgres/with-client.js";
import { FaultProxy } from "../proxy/fault-proxy.js";
import { choosePostgres } from "./choose-provider.js";
import { hostOptions, type PostgresOptions, PostgresServer } from "./postgres-server.js";

const JOIN_TIMEOUT_MS = 10_000;
const POLL_MS = 3;

export interface PairOptions extends PostgresOptions {
  /** "sync": a commit is acknowledged when the standby has it. "async": it does not wait. */
  readonly replication: "sync" | "async";
}

interface Members {
  readonly primary: PostgresServer;
  readonly standby: PostgresServer;
  readonly replication: FaultProxy;
}

export class PostgresPair implements AsyncDisposable {
  readonly primary: PostgresServer;
  /** Reads only, until `promote`. */
  readonly standby: PostgresServer;
  /** Between the two: `partition()`, `slow(ms)`, `heal()`. */
  readonly replication: FaultProxy;

  private constructor({ primary, standby, replication }: Members) {
    this.primary = primary;
    this.standby = standby;
    this.replication = replication;
  }

  static async start(options: PairOptions): Promise<PostgresPair> {
    const { provider, origin } = await choosePostgres(options.provider);
    const common = hostOptions(options);
    const waitsFor = options.replication === "sync" ? { synchronous_standby_names: STANDBY_NAME } : {};
    const primary = await provider.start({ ...common, settings: { ...waitsFor, ...common.settings } });
    const replication = await FaultProxy.start({ upstream: primary });
    let standby: PostgresHost | undefined;
    try {
      standby = await provider.startStandby(common, replicationAddress(replication));
      const pair = new PostgresPair({
        primary: new PostgresServer(primary, origin),
        standby: new PostgresServer(standby, origin),
        replication,
      });
      await pair.joined();
      return pair;
    } catch (error) {
      await Promise.all([primary.stop(), standby?.stop(), replication.stop()]);
      throw error;
    }
  }

  /** Waits until the standby streams; in a synchronous pair, until the primary counts on it. */
  async joined(): Promise<void> {
    await until(this.primary.url, {
      holds: `select from pg_stat_replication where state = 'streaming'
        and (sync_state = 'sync' or current_setting('synchronous_standby_names') = '')`,
      meaning: "the standby did not join its primary",
    });
  }

  /** Waits until the standby shows all that the primary has committed so far. */
  async caughtUp(): Promise<void> {
    const { rows } = await withClient(this.primary.url, (client) =>
      client.query<{ lsn: string }>("select pg_current_wal_lsn()::text as lsn"),
    );
    await until(this.standby.url, {
      holds: `select where pg_last_wal_replay_lsn() >= '${rows[0]?.lsn}'`,
      meaning: "the standby did not catch up with its primary",
    });
  }

  /** The standby becomes a primary that accepts writes; the former primary is not touched. */
  async promote(): Promise<void> {
    await withClient(this.standby.url, (client) => client.query("select pg_promote(wait => false)"));
    await until(this.standby.url, { holds: "select where not pg_is_in_recovery()", meaning: "the standby was not promoted" });
  }

  async stop(): Promise<void> {
    await Promise.all([this.primary.stop(), this.standby.stop(), this.replication.stop()]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

function replicationAddress({ host, port }: FaultProxy): { host: string; port: number } {
  return { host, port };
}

interface Condition {
  /** A query that finds a row once it is true. */
  readonly holds: string;
  readonly meaning: string;
}

async function until(url: string, { holds, meaning }: Condition): Promise<void> {
  await withClient(url, async (client: pg.Client) => {
    const givenUpAt = performance.now() + JOIN_TIMEOUT_MS;
    while ((await client.query(holds)).rowCount === 0) {
      if (performance.now() > givenUpAt) throw new Error(`${meaning} within ${JOIN_TIMEOUT_MS} ms`);
      await sleep(POLL_MS);
    }
  });
}
