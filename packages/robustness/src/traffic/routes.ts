// How a client's reads and writes reach the store: by the gateway's own client, which repeats what is safe to repeat; or
// in the control straight to Postgres, without a fence. A recorder notes every call.
import type { Refusal } from "@palisade/client";
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

type Answered = { readonly ok: true; readonly rev: number } | Pick<Refusal, "ok" | "outcome" | "code">;
type Shown = { readonly ok: true; readonly rev: number; readonly value: Document | null } | Pick<Refusal, "ok" | "outcome" | "code">;
type Shows = { readonly token: number; readonly seq?: number } | { readonly lease: HeldLease; readonly seq?: number };

/** What the recorder needs of a store: the gateway's client has it, and the control's way past the gateway. */
export interface Documents {
  /** Raises the fence and reads. */
  seal(resource: string, shows: Shows): Promise<Shown>;
  get(resource: string): Promise<Shown>;
  put(resource: string, document: Document, shows: Shows): Promise<Answered>;
  patch(resource: string, document: Document, shows: Shows): Promise<Answered>;
  delete(resource: string, shows: Shows): Promise<Answered>;
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
export function unfenced(storeUrl: string): Documents & { close(): Promise<void> } {
  const pool = new pg.Pool({ connectionString: storeUrl, max: 2, connectionTimeoutMillis: 500, query_timeout: 1_500 });
  pool.on("error", noAnswer); // An idle connection broke; the next query on it rejects.
  const unknown = { ok: false, outcome: "unknown", code: "connection_failed" } as const;
  const read = async (resource: string): Promise<Shown> => {
    const text = "select rev::int, value from unfenced_documents where resource = $1";
    const answer = await pool.query<{ rev: number; value: Document | null }>(text, [resource]).catch(noAnswer);
    return answer === undefined ? unknown : { ok: true, ...(answer.rows[0] ?? { rev: 0, value: null }) };
  };
  const write =
    (kind: WriteKind) =>
    async (resource: string, document: Document | null, shows: Shows): Promise<Answered> => {
      const token = "lease" in shows ? shows.lease.token : shows.token;
      const values = [resource, document === null ? null : JSON.stringify(document), token, shows.seq, kind];
      const answer = await pool.query<{ rev: number }>(UNFENCED_WRITE, values).catch(noAnswer);
      const rev = answer?.rows[0]?.rev;
      return rev === undefined ? unknown : { ok: true, rev };
    };
  const remove = write("delete");
  return {
    seal: read,
    get: read,
    put: write("put"),
    patch: write("patch"),
    delete: (resource, shows) => remove(resource, null, shows),
    close: () => pool.end(),
  };
}

// Whatever broke, what came of the call is unknown.
function noAnswer(): undefined {}

export function refused({ outcome, code }: Pick<Refusal, "outcome" | "code">): Answer {
  return { outcome: outcome === "unknown" ? "unknown" : "refused", code };
}

interface PlannedWrite {
  readonly kind: WriteKind;
  readonly resource: string;
  readonly seq: number;
  /** What the writer knows of the document: the new one is made from it. */
  readonly on: Seen;
  readonly lease: HeldLease;
  /** With the lease the client may refuse by itself when it is over; with the token it cannot. */
  readonly shows: "lease" | "token";
}

interface Recorded {
  /** A gateway for each call, or the control. */
  store(): Documents;
  readonly via: Via;
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

  answered(id: string, answer: Answer, seen?: Seen): void {
    this.#of.self.count(answer.outcome);
    this.#of.lines.write({ e: "answered", id, at: nowMs(), ...answer, ...(seen === undefined ? {} : { document: seen.document }) });
  }

  seal(resource: string, token: number): Promise<Seen | undefined> {
    return this.#read({ kind: "seal", resource, token }, () => this.#of.store().seal(resource, { token }));
  }

  get(resource: string): Promise<Seen | undefined> {
    return this.#read({ kind: "get", resource }, () => this.#of.store().get(resource));
  }

  /** What is stored now, if it was done. */
  async write({ kind, resource, seq, on, lease, shows }: PlannedWrite): Promise<Seen | undefined> {
    const { store, via, self } = this.#of;
    const { token } = lease;
    const id = this.name();
    const document = kind === "delete" ? null : successor(on.document, id);
    this.sent({ id, kind, via, resource, token, seq, on: basis(on) });
    const options = shows === "lease" ? { lease, seq } : { token, seq };
    const how = kind === "patch" ? "patch" : "put";
    const answer = await (document === null ? store().delete(resource, options) : store()[how](resource, document, options));
    this.answered(id, answer.ok ? { outcome: "done", rev: answer.rev } : refused(answer));
    if (!answer.ok) return undefined;
    if (answer.rev > on.rev + 1) self.count("overwrote");
    return { rev: answer.rev, document };
  }

  async #read(call: Omit<Call, "id" | "via">, ask: () => Promise<Shown>): Promise<Seen | undefined> {
    const id = this.name();
    this.sent({ id, via: this.#of.via, ...call });
    const answer = await ask();
    const seen = answer.ok ? { rev: answer.rev, document: answer.value } : undefined;
    this.answered(id, answer.ok ? { outcome: "done", rev: answer.rev } : refused(answer), seen);
    return seen;
  }
}

export function basis({ rev, document }: Seen): Basis {
  return { rev, by: document?.by ?? null };
}
