// The control: straight to Postgres with the same documents and revisions, and no fence. A token is
// stored and compared with nothing.
import pg from "pg";
import type { Answer, Document } from "../history/records.js";
import type { ReadAnswer, Route, Write } from "./route.js";

export const UNFENCED_TABLES = `
  create table if not exists unfenced_documents (resource text primary key, rev bigint not null, value jsonb);
  create table if not exists unfenced_history (resource text, rev bigint, token bigint, seq bigint, op text, primary key (resource, rev))`;

const WRITE = `
  with stored as (
    insert into unfenced_documents as d (resource, rev, value) values ($1, 1, $2)
    on conflict (resource) do update set rev = d.rev + 1, value = excluded.value returning rev)
  insert into unfenced_history (resource, rev, token, seq, op) select $1, rev, $3, $4, $5 from stored returning rev::int`;

export function unfencedRoute(storeUrl: string): Route & { close(): Promise<void> } {
  const pool = new pg.Pool({ connectionString: storeUrl, max: 2, connectionTimeoutMillis: 500, query_timeout: 1_500 });
  pool.on("error", ignored);
  const read = async (resource: string): Promise<ReadAnswer> => {
    const answer = await pool
      .query<{ rev: number; value: Document | null }>("select rev::int, value from unfenced_documents where resource = $1", [resource])
      .catch(noAnswer);
    if (answer === undefined) return { outcome: "unknown", code: "no answer" };
    const { rev, value } = answer.rows[0] ?? { rev: 0, value: null };
    return { outcome: "done", rev, seen: { rev, document: value } };
  };
  return {
    via: "unfenced",
    seal: read,
    get: read,
    write: async ({ kind, resource, token, seq, document }: Write): Promise<Answer> => {
      const values = [resource, document === null ? null : JSON.stringify(document), token, seq, kind];
      const answer = await pool.query<{ rev: number }>(WRITE, values).catch(noAnswer);
      const rev = answer?.rows[0]?.rev;
      return rev === undefined ? { outcome: "unknown", code: "no answer" } : { outcome: "done", rev };
    },
    close: () => pool.end(),
  };
}

// The store could not be reached.
function noAnswer(): undefined {}
// An idle connection broke; the next query on it rejects.
function ignored(): void {}
