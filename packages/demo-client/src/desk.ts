// Where a worker reads and writes: the gateway, with a token, or, for controls only, a table that no gateway guards.
// Must not touch the gateway's own tables.
import { createGatewayClient, type GatewayClient, type Refusal } from "@palisade/gateway/client";
import pg from "pg";
import type { Answer, Document, Door, ReadResult, Refused, Surroundings, WriteResult } from "./worker-protocol.js";

/** The controls' table. */
export const unguardedTable = `create schema if not exists demo;
  create table if not exists demo.documents (name text primary key, rev bigint not null, value jsonb not null)`;

export interface Write {
  readonly resource: string;
  readonly document: Document;
  /** Undefined where no lease has one; the gateway takes no such write. */
  readonly token: number | undefined;
}

export class Desk {
  readonly #client: GatewayClient;
  readonly #database: pg.Pool;

  constructor({ gatewayUrl, apiKey, databaseUrl, ttlMs }: Surroundings) {
    // Patient for twenty seconds: in a story a machine that stands still must not look like a lock or a store that cannot be asked.
    this.#client = createGatewayClient({ url: gatewayUrl, apiKey, timeoutMs: 60_000 + 5 * ttlMs, retry: { attempts: 15 } });
    this.#database = new pg.Pool({ connectionString: databaseUrl, max: 2, application_name: "palisade-demo" });
    // The next query on the pool fails as well, and is answered.
    this.#database.on("error", (error) => console.error(`an idle connection to Postgres ended: ${error.message}`));
  }

  async ready(): Promise<void> {
    await this.#database.query("select");
  }

  async seal(resource: string, token: number | undefined): Promise<Answer<ReadResult>> {
    if (token === undefined) return noToken;
    const sealed = await this.#client.seal<Document>(resource, { token });
    return sealed.ok ? { ok: true, document: sealed.value, rev: sealed.rev } : refusal(sealed);
  }

  async read(resource: string, door: Door): Promise<Answer<ReadResult>> {
    if (door === "postgres") return this.#readTable(resource);
    const read = await this.#client.get<Document>(resource);
    if (read.ok) return { ok: true, document: read.modified ? read.value : null, rev: read.rev };
    return read.code === "not_found" ? { ok: true, document: null, rev: 0 } : refusal(read);
  }

  async write(door: Door, write: Write): Promise<WriteResult> {
    if (door === "postgres") return this.#writeTable(write);
    if (write.token === undefined) return noToken;
    const written = await this.#client.put(write.resource, write.document, { token: write.token });
    return written.ok ? { ok: true, status: written.created ? 201 : 200, rev: written.rev } : refusal(written);
  }

  async close(): Promise<void> {
    await this.#database.end();
  }

  async #readTable(resource: string): Promise<Answer<ReadResult>> {
    const { rows } = await this.#database.query<{ rev: string; value: Document }>("select rev, value from demo.documents where name = $1", [
      resource,
    ]);
    return { ok: true, document: rows[0]?.value ?? null, rev: Number(rows[0]?.rev ?? 0) };
  }

  /** What an application does that trusts its lock: it writes. */
  async #writeTable({ resource, document }: Write): Promise<WriteResult> {
    const { rows } = await this.#database.query<{ rev: string }>(
      `insert into demo.documents as stored (name, rev, value) values ($1, 1, $2)
         on conflict (name) do update set rev = stored.rev + 1, value = excluded.value returning rev`,
      [resource, JSON.stringify(document)],
    );
    return { ok: true, status: 200, rev: Number(rows[0]?.rev) };
  }
}

const noToken = { ok: false, code: "no_token", message: "there is no lease, so there is no token to write with" } as const;

function refusal({ code, detail, status, currentToken, presentedToken }: Refusal): Refused {
  return { ok: false, code, message: detail, status, currentToken, presentedToken };
}
