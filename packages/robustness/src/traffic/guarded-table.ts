// The fence inside a transaction on a table of the client's own: guard, read, write, commit.
import { guard } from "@palisade/guard";
import pg from "pg";
import { type Document, type Seen, successor } from "../history/records.js";
import type { ReadAnswer } from "./route.js";

export const GUARDED_TABLES = `
  create table if not exists accounts (resource text primary key, rev bigint not null, value jsonb not null);
  create table if not exists account_entries (resource text, rev bigint, token bigint, by text, primary key (resource, rev))`;

interface GuardedWrite {
  readonly resource: string;
  readonly token: number;
  readonly by: string;
  /** Called in the transaction after the read and before the write. */
  readonly onRead: (seen: Seen) => void;
}

export class GuardedTable {
  readonly #url: string;
  #client: pg.Client | undefined;

  constructor(url: string) {
    this.#url = url;
  }

  async write(wanted: GuardedWrite): Promise<ReadAnswer> {
    const client = await this.#open();
    if (client === undefined) return { outcome: "refused", code: "no connection" };
    let warned = false;
    const onNotice = (): void => {
      warned = true;
    };
    client.on("notice", onNotice);
    let committing = false;
    try {
      await client.query("begin");
      await guard(client, { resource: wanted.resource, token: wanted.token, holder: wanted.by });
      const seen = await change(client, wanted);
      committing = true;
      await client.query("commit");
      // Committed here, perhaps not on the standby.
      if (warned) return { outcome: "unknown", code: "warned" };
      return { outcome: "done", rev: seen.rev };
    } catch (error) {
      this.#drop();
      const { code, message } = error as { code?: string; message: string };
      return { outcome: committing ? "unknown" : "refused", code: code ?? message };
    } finally {
      client.off("notice", onNotice);
    }
  }

  async close(): Promise<void> {
    await this.#client?.end();
  }

  async #open(): Promise<pg.Client | undefined> {
    if (this.#client !== undefined) return this.#client;
    const client = new pg.Client({ connectionString: this.#url, connectionTimeoutMillis: 500, query_timeout: 1_500 });
    client.on("error", () => this.#drop()); // The statement that waits on it fails by itself.
    try {
      await client.connect();
      this.#client = client;
      return client;
    } catch {
      return undefined; // The caller's answer says so.
    }
  }

  // After an error the state of the session is unknown, and a new one is cheap.
  #drop(): void {
    const client = this.#client;
    this.#client = undefined;
    (client as unknown as { connection: { stream: { destroy(): void } } } | undefined)?.connection.stream.destroy();
  }
}

async function change(client: pg.Client, { resource, token, by, onRead }: GuardedWrite): Promise<Seen> {
  const { rows } = await client.query<{ rev: number; value: Document }>("select rev::int, value from accounts where resource = $1", [
    resource,
  ]);
  const before: Seen = rows[0] === undefined ? { rev: 0, document: null } : { rev: rows[0].rev, document: rows[0].value };
  onRead(before);
  const after = { rev: before.rev + 1, document: successor(before.document, by) };
  const value = JSON.stringify(after.document);
  await client.query(
    "insert into accounts (resource, rev, value) values ($1, $2, $3) on conflict (resource) do update set rev = $2, value = $3",
    [resource, after.rev, value],
  );
  await client.query("insert into account_entries (resource, rev, token, by) values ($1, $2, $3, $4)", [resource, after.rev, token, by]);
  return after;
}
