// What a team writes by hand in front of Postgres: one upsert for each request, with or without the
// comparison of a token; the same for many requests in one statement; and a transaction of many
// rows as one statement.
import pg from "pg";

export interface Document {
  readonly resource: string;
  readonly token: number;
  /** JSON. */
  readonly text: string;
}

/** The new revision, or undefined where the token is lower than the stored one. */
export type Stored = string | undefined;

export interface PlainStore {
  put(document: Document): Promise<Stored>;
  /** The value as pg parses it, or its text. */
  get(resource: string): Promise<{ readonly value: unknown; readonly rev: string } | undefined>;
  /** All or nothing. */
  putAll(documents: readonly Document[]): Promise<"stored" | "refused">;
  close(): Promise<void>;
}

interface StoreOptions {
  readonly url: string;
  readonly poolSize: number;
  /** Whether a token below the stored one is refused. */
  readonly isFenced: boolean;
  /** Whether the requests that wait share a statement. */
  readonly isBatched: boolean;
  /** Whether documents are read as text, without being parsed. */
  readonly readsText: boolean;
}

const SCHEMA = `create table if not exists documents
    (resource text primary key, value jsonb not null, token bigint not null, rev bigint not null default 1) with (fillfactor = 80);
  create or replace function refuse() returns bigint language plpgsql as $$ begin raise exception 'stale' using errcode = 'P0412'; end $$`;

const REFUSED = "P0412";
const STATEMENTS_IN_FLIGHT = 4;
const MAX_ROWS = 200;

const update = "on conflict (resource) do update set value = excluded.value, token = excluded.token, rev = stored.rev + 1";
const fence = "where stored.token <= excluded.token";

interface Waiting {
  readonly document: Document;
  resolve(stored: Stored): void;
  reject(error: unknown): void;
}

export async function openStore({ url, poolSize, isFenced, isBatched, readsText }: StoreOptions): Promise<PlainStore> {
  const pool = new pg.Pool({ connectionString: url, max: poolSize });
  await pool.query(SCHEMA);
  const where = isFenced ? fence : "";
  const one = {
    name: "put",
    text: `insert into documents as stored (resource, value, token) values ($1, $2, $3) ${update} ${where} returning rev`,
  };
  const many = {
    name: "put-many",
    text: `insert into documents as stored (resource, value, token) select * from unnest($1::text[], $2::jsonb[], $3::bigint[]) ${update} ${where} returning resource, rev`,
  };
  const all = {
    name: "put-all",
    text: `with written as (${many.text}) select case when (select count(*) from written) < $4::bigint then refuse() else 0 end`,
  };
  const put = async ({ resource, token, text }: Document): Promise<Stored> => {
    const { rows } = await pool.query<{ rev: string }>({ ...one, values: [resource, text, token] });
    return rows[0]?.rev;
  };
  const putMany = async (documents: readonly Document[]): Promise<ReadonlyMap<string, string>> => {
    const { rows } = await pool.query<{ resource: string; rev: string }>({ ...many, values: columnsOf(documents) });
    return new Map(rows.map(({ resource, rev }) => [resource, rev]));
  };
  return {
    put: isBatched ? batched(putMany) : put,
    async get(resource) {
      const text = `select value${readsText ? "::text" : ""}, rev from documents where resource = $1`;
      const { rows } = await pool.query<{ value: unknown; rev: string }>({ name: "get", text, values: [resource] });
      return rows[0];
    },
    async putAll(documents) {
      try {
        await pool.query({ ...all, values: [...columnsOf(documents), documents.length] });
        return "stored";
      } catch (error) {
        if ((error as { code?: string }).code === REFUSED) return "refused";
        throw error;
      }
    },
    close: () => pool.end(),
  };
}

function columnsOf(documents: readonly Document[]): unknown[][] {
  return [documents.map(({ resource }) => resource), documents.map(({ text }) => text), documents.map(({ token }) => token)];
}

/** Of the same resource the last one of a batch is written; its revision answers all of them. */
function batched(putMany: (documents: readonly Document[]) => Promise<ReadonlyMap<string, string>>): PlainStore["put"] {
  const queue: Waiting[] = [];
  let inFlight = 0;
  const flush = async (): Promise<void> => {
    const batch = queue.splice(0, MAX_ROWS);
    if (batch.length === 0) return;
    inFlight += 1;
    const last = new Map(batch.map(({ document }) => [document.resource, document]));
    try {
      // In one order everywhere: two statements of the same rows must not wait for each other.
      const stored = await putMany([...last.values()].sort((a, b) => (a.resource < b.resource ? -1 : 1)));
      for (const { document, resolve } of batch) resolve(stored.get(document.resource));
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
    inFlight -= 1;
    if (queue.length > 0) void flush();
  };
  return (document) =>
    new Promise((resolve, reject) => {
      queue.push({ document, resolve, reject });
      // Once all requests of this turn of the event loop are read.
      if (queue.length === 1) setImmediate(() => inFlight < STATEMENTS_IN_FLIGHT && void flush());
    });
}
