// How a worker reads and writes: through the gateway with a token or, for controls, in a table
// without a fence. It does not touch the gateway's own tables.
import { createGatewayClient, type GatewayClient, type Refusal } from "@palisade/client";
import pg from "pg";
import type { Document, ReadResult, Refused, Route, WorkerConfig, WriteResult } from "./protocol.js";

/** The controls' table. */
export const unfencedTable = `create schema if not exists demo;
  create table if not exists demo.documents (name text primary key, rev bigint not null, value jsonb not null)`;

export interface Write {
  readonly resource: string;
  readonly document: Document;
  /** Undefined under a plain lock; the gateway takes no such write. */
  readonly token: number | undefined;
}

export class StoreClient {
  readonly #route: Route;
  readonly #client: GatewayClient;
  readonly #database: pg.Pool;
  /** By resource: the last revision that this worker read or wrote in the table. */
  readonly #seen = new Map<string, number>();
  readonly #databaseUrl: string;
  /** By resource: the session that has its advisory lock. */
  readonly #sessions = new Map<string, pg.Client>();

  constructor({ route, gatewayUrl, databaseUrl, ttlMs }: Omit<WorkerConfig, "name">) {
    this.#route = route;
    this.#databaseUrl = databaseUrl;
    // Retried for long: a machine that stands still must not look like an unreachable store.
    const timeoutMs = 60_000 + 5 * ttlMs;
    this.#client = createGatewayClient({ url: gatewayUrl, timeoutMs, retry: { attempts: 15 } });
    this.#database = new pg.Pool({ connectionString: databaseUrl, max: 2, application_name: "palisade-demo" });
    // Only reported: the next query on the pool fails as well, and its caller is answered.
    this.#database.on("error", (error) => console.error(`an idle connection to Postgres ended: ${error.message}`));
  }

  /** The lane in which its answers are shown. */
  get lane(): "gateway" | "store" {
    return this.#route === "gateway" ? "gateway" : "store";
  }

  async ready(): Promise<void> {
    await this.#database.query("select");
  }

  async seal(resource: string, token: number): Promise<ReadResult | Refused> {
    const sealed = await this.#client.seal<Document>(resource, { token });
    return sealed.ok ? { ok: true, document: sealed.value, rev: sealed.rev } : refused(sealed);
  }

  async read(resource: string): Promise<ReadResult | Refused> {
    if (this.#route !== "gateway") return await this.#readTable(resource);
    const read = await this.#client.get<Document>(resource);
    if (read.ok) return { ok: true, document: read.value, rev: read.rev };
    return read.code === "not_found" ? { ok: true, document: null, rev: 0 } : refused(read);
  }

  async write(write: Write): Promise<WriteResult> {
    if (this.#route !== "gateway") return await this.#writeTable(write);
    if (write.token === undefined) return noToken;
    const written = await this.#client.put(write.resource, write.document, { token: write.token });
    return written.ok ? { ok: true, status: written.created ? 201 : 200, rev: written.rev } : refused(written);
  }

  /** Takes the advisory lock of a session of its own, asking once: the session's process, or 0. */
  async lockSession(resource: string): Promise<number> {
    const session = new pg.Client({ connectionString: this.#databaseUrl, application_name: "palisade-demo" });
    session.on("error", () => this.#sessions.delete(resource));
    await session.connect();
    const { rows } = await session.query<{ pid: number; taken: boolean }>(
      "select pg_backend_pid() as pid, pg_try_advisory_lock(hashtextextended($1, 0)) as taken",
      [resource],
    );
    if (rows[0]?.taken === true) this.#sessions.set(resource, session);
    else await session.end();
    return rows[0]?.taken === true ? rows[0].pid : 0;
  }

  /** As far as this process has heard. */
  holdsSession(resource: string): boolean {
    return this.#sessions.has(resource);
  }

  async unlockSession(resource: string): Promise<void> {
    await this.#sessions.get(resource)?.end();
    this.#sessions.delete(resource);
  }

  async close(): Promise<void> {
    await Promise.all([this.#database.end(), ...[...this.#sessions.values()].map((session) => session.end())]);
  }

  async #readTable(resource: string): Promise<ReadResult> {
    const select = "select rev, value from demo.documents where name = $1";
    const { rows } = await this.#database.query<{ rev: string; value: Document }>(select, [resource]);
    const rev = Number(rows[0]?.rev ?? 0);
    this.#seen.set(resource, rev);
    return { ok: true, document: rows[0]?.value ?? null, rev };
  }

  /** As an application writes that trusts its lock; with a version column, one that has read. */
  async #writeTable({ resource, document }: Write): Promise<WriteResult> {
    const seen = this.#route === "version column" ? this.#seen.get(resource) : undefined;
    const { rows } = await this.#database.query<{ rev: string; replaced: Document | null }>(
      `with before as (select value from demo.documents where name = $1)
       insert into demo.documents as stored (name, rev, value) values ($1, 1, $2)
         on conflict (name) do update set rev = stored.rev + 1, value = excluded.value
           where $3::bigint is null or stored.rev = $3
         returning rev, (select value from before) as replaced`,
      [resource, JSON.stringify(document), seen],
    );
    if (rows.length === 0) return { ok: false, code: "version_changed", message: `it is no longer revision ${seen}` };
    const { rev, replaced } = { rev: Number(rows[0]?.rev), replaced: rows[0]?.replaced ?? null };
    const saw = this.#seen.get(resource) ?? 0;
    this.#seen.set(resource, rev);
    const stored = { ok: true, status: 200, rev } as const;
    return rev - 1 > saw && replaced !== null ? { ...stored, overwritten: replaced } : stored;
  }
}

const noToken: Refused = {
  ok: false,
  code: "no_token",
  message: "there is no lease, so there is no token to write with",
};

function refused({ code, detail, status, currentToken, presentedToken }: Refusal): Refused {
  return { ok: false, code, message: detail, status, currentToken, presentedToken };
}
