// The routes by which a client's reads and writes reach the store: the gateway's own client, which
// repeats what is safe to repeat; and the control, straight to Postgres, without a fence. A recorder
// notes every call.
import type { DeleteResult, GatewayClient, PatchResult, PutResult, Refusal } from "@palisade/client";
import pg from "pg";
import {
  type Answer,
  type Basis,
  type Call,
  type Document,
  type LineWriter,
  nowMs,
  type Seen,
  successor,
  type Via,
  type WriteKind,
} from "../history.js";
import type { Process } from "./messages.js";
import type { HeldLease } from "./recorded-lock.js";

export interface ReadAnswer extends Answer {
  /** Present if done. */
  readonly seen?: Seen;
}

interface Write {
  readonly kind: WriteKind;
  readonly resource: string;
  readonly token: number;
  readonly seq: number;
  /** null for a delete. */
  readonly document: Document | null;
  /** Present where the route may refuse by itself when the lease is over. */
  readonly lease?: { readonly token: number; readonly signal: AbortSignal };
}

export interface Route {
  readonly via: Via;
  /** Raises the fence and reads. */
  seal(resource: string, token: number): Promise<ReadAnswer>;
  get(resource: string): Promise<ReadAnswer>;
  write(write: Write): Promise<Answer>;
}

/** `choose`: a gateway for each call. */
export function gatewayClientRoute(choose: () => GatewayClient): Route {
  return {
    via: "client",
    seal: async (resource, token) => {
      const sealed = await choose().seal<Document>(resource, { token });
      if (!sealed.ok) return refused(sealed);
      return { outcome: "done", rev: sealed.rev, seen: { rev: sealed.rev, document: sealed.value } };
    },
    get: async (resource) => {
      const got = await choose().get<Document>(resource);
      if (!got.ok) return refused(got);
      return { outcome: "done", rev: got.rev, ...(got.modified ? { seen: { rev: got.rev, document: got.value } } : {}) };
    },
    write: async ({ kind, resource, token, seq, document, lease }) => {
      const [client, options] = [choose(), lease === undefined ? { token, seq } : { lease, seq }];
      const result: PutResult | PatchResult | DeleteResult = await (kind === "delete"
        ? client.delete(resource, options)
        : client[kind](resource, document, options));
      return result.ok ? { outcome: "done", rev: result.rev } : refused(result);
    },
  };
}

export function refused({ outcome, code }: Pick<Refusal, "outcome" | "code">): ReadAnswer {
  return { outcome: outcome === "unknown" ? "unknown" : "refused", code };
}

export const UNFENCED_TABLES = `
  create table if not exists unfenced_documents (resource text primary key, rev bigint not null, value jsonb);
  create table if not exists unfenced_history (resource text, rev bigint, token bigint, seq bigint, op text, primary key (resource, rev))`;

const UNFENCED_WRITE = `
  with stored as (
    insert into unfenced_documents as d (resource, rev, value) values ($1, 1, $2)
    on conflict (resource) do update set rev = d.rev + 1, value = excluded.value returning rev)
  insert into unfenced_history (resource, rev, token, seq, op) select $1, rev, $3, $4, $5 from stored returning rev::int`;

/** The same documents and revisions. A token is stored and compared with nothing. */
export function unfencedRoute(storeUrl: string): Route & { close(): Promise<void> } {
  const pool = new pg.Pool({ connectionString: storeUrl, max: 2, connectionTimeoutMillis: 500, query_timeout: 1_500 });
  pool.on("error", noAnswer); // An idle connection broke; the next query on it rejects.
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
    write: async ({ kind, resource, token, seq, document }) => {
      const values = [resource, document === null ? null : JSON.stringify(document), token, seq, kind];
      const answer = await pool.query<{ rev: number }>(UNFENCED_WRITE, values).catch(noAnswer);
      const rev = answer?.rows[0]?.rev;
      return rev === undefined ? { outcome: "unknown", code: "no answer" } : { outcome: "done", rev };
    },
    close: () => pool.end(),
  };
}

// Whatever broke, what came of the call is unknown.
function noAnswer(): undefined {}

interface PlannedWrite {
  readonly kind: WriteKind;
  readonly resource: string;
  readonly seq: number;
  /** What the writer knows of the document: the new one is made from it. */
  readonly on: Seen;
  readonly lease: HeldLease;
  /** With the lease the route may refuse by itself when it is over; with the token it cannot. */
  readonly shows: "lease" | "token";
}

interface Recorded {
  readonly route: Route;
  readonly author: string;
  readonly lines: LineWriter;
  readonly self: Pick<Process, "count">;
}

/** Records every call before it is made and after it was answered, and names the writes. */
export class Recorder {
  readonly #of: Recorded;
  #count = 0;

  constructor(of: Recorded) {
    this.#of = of;
  }

  /** A name for one call; a write is stored with it. */
  name(): string {
    return `${this.#of.author}-${++this.#count}`;
  }

  sent(call: Call): void {
    this.#of.lines.write({ e: "sent", at: nowMs(), ...call });
  }

  answered(id: string, { seen, ...answer }: ReadAnswer): void {
    this.#of.self.count(answer.outcome);
    this.#of.lines.write({ e: "answered", id, at: nowMs(), ...answer, ...(seen === undefined ? {} : { document: seen.document }) });
  }

  async seal(resource: string, token: number): Promise<ReadAnswer> {
    const { route } = this.#of;
    return await this.#asked({ kind: "seal", via: route.via, resource, token }, () => route.seal(resource, token));
  }

  async get(resource: string): Promise<ReadAnswer> {
    const { route } = this.#of;
    return await this.#asked({ kind: "get", via: route.via, resource }, () => route.get(resource));
  }

  /** The answer, and if it was done what is stored now. */
  async write({ kind, resource, seq, on, lease, shows }: PlannedWrite): Promise<ReadAnswer> {
    const { route, self } = this.#of;
    const { token } = lease;
    const id = this.name();
    const document = kind === "delete" ? null : successor(on.document, id);
    this.sent({ id, kind, via: route.via, resource, token, seq, on: basis(on) });
    const answer = await route.write({ kind, resource, token, seq, document, ...(shows === "lease" ? { lease } : {}) });
    this.answered(id, answer);
    if (answer.outcome !== "done" || answer.rev === undefined) return answer;
    if (answer.rev > on.rev + 1) self.count("overwrote");
    return { ...answer, seen: { rev: answer.rev, document } };
  }

  async #asked(call: Omit<Call, "id">, ask: () => Promise<ReadAnswer>): Promise<ReadAnswer> {
    const id = this.name();
    this.sent({ id, ...call });
    const answer = await ask();
    this.answered(id, answer);
    return answer;
  }
}

export function basis({ rev, document }: Seen): Basis {
  return { rev, by: document?.by ?? null };
}
