// Fenced writes on tables that Citus distributes. A batch is of one shard, so all that it does is
// done by one worker in one transaction, which commits there without a second phase; only a
// transaction over several workers has one. Idempotency keys are kept beside their resource, and
// those of a transaction beside its lowest name.
import { type Failure, isRace } from "../fence/failure.js";
import type { BoundStatement, Reply, Row } from "../store/statement.js";
import type { WriteConnection } from "../store/write-connection.js";
import { type CitusForm, mayInsert, recordRows, rememberKeys, type Used, updateRows, upsertRows } from "./citus-statement.js";
import { type FencedRow, named } from "./fenced-statement.js";
import type { Asked, FencedWrites, Whole } from "./fenced-writes.js";
import { arrayOf, type Explanation, type StoredState, type UsedKey } from "./refusal.js";
import type { Entry } from "./write-queue.js";

interface CitusWritesForm extends CitusForm {
  readonly history: "off" | "on";
}

type Run = (statement: BoundStatement) => Promise<readonly Row[]>;

const STATEMENT_TIMED_OUT = "57014";
const NAME = "palisade-citus-write";
/** Names on as many shards as chance has it, for the case that a worker is away. */
const REHEARSALS = 4;
const STATES = named(
  "palisade-citus-states",
  "select resource, token, seq, rev, deleted from palisade.resources where resource = any($1::text[])",
);
const KEYS = named(
  "palisade-citus-keys",
  "select resource, key, fingerprint, outcome from palisade.used_keys where resource = any($1::text[]) and key = any($2::text[])",
);

export class CitusWrites implements FencedWrites {
  readonly #form: CitusWritesForm;
  readonly #shardOf: (resource: string) => number;

  constructor(form: CitusWritesForm, shardOf: (resource: string) => number) {
    this.#form = form;
    this.#shardOf = shardOf;
  }

  each(connection: WriteConnection, batch: readonly Entry[]): Promise<Reply> {
    return connection.transaction(NAME, async (run) => {
      const accepted = await run(
        this.#writeOf(
          batch,
          batch.every(({ known, attempts }) => known && attempts === 0),
        ),
      );
      if (accepted.length === 0) return undefined;
      await this.#record(run, accepted, batch);
      const byName = new Map(accepted.map((row) => [row[0], row]));
      const used = batch.flatMap(({ request: { resource, idempotency } }): Used[] => {
        const row = byName.get(resource);
        return idempotency === undefined || row === undefined ? [] : [{ resource, idempotency, rows: [row] }];
      });
      if (used.length > 0) await run(rememberKeys(used));
      return accepted;
    });
  }

  all(connection: WriteConnection, rows: readonly FencedRow[], { idempotency }: Whole): Promise<Reply> {
    return connection.transaction(NAME, async (run) => {
      const accepted: Row[] = [];
      // In the order of the shards, which is the same in every gateway.
      for (const some of byShard(rows, ({ request }) => this.#shardOf(request.resource))) {
        const parts = [some.filter(mayInsert), some.filter((row) => !mayInsert(row))].filter(({ length }) => length > 0);
        for (const part of parts) {
          const written = await run(mayInsert(part[0] as FencedRow) ? upsertRows(this.#form, part) : updateRows(this.#form, part));
          if (written.length < part.length) return undefined;
          await this.#record(run, written, part);
          accepted.push(...written);
        }
      }
      const [home] = rows;
      if (idempotency !== undefined && home !== undefined)
        await run(rememberKeys([{ resource: home.request.resource, idempotency, rows: accepted }]));
      return accepted;
    });
  }

  #writeOf(batch: readonly Entry[], isKnown: boolean): BoundStatement {
    if (!isKnown && batch.every(mayInsert)) return upsertRows(this.#form, batch);
    return updateRows(
      this.#form,
      batch,
      batch.map(({ request }) => request.idempotency?.key),
    );
  }

  async #record(run: Run, accepted: readonly Row[], asked: readonly FencedRow[]): Promise<void> {
    if (this.#form.history === "off") return;
    const folds = new Map(asked.map(({ request, fold = [] }) => [request.resource, 1 + fold.length]));
    const statement = recordRows(accepted, (resource) => folds.get(String(resource)) ?? 1);
    if (statement !== undefined) await run(statement);
  }

  async explain(connection: WriteConnection, { resources, keys }: Asked): Promise<Explanation | { readonly failure: Failure }> {
    const reply = await connection.run({ ...STATES, values: [arrayOf(resources)] });
    if ("failure" in reply) return reply;
    const states = new Map(reply.rows.map((row) => [row[0], stateOf(row)]));
    const usedKeys = await this.#usedKeys(connection, { resources, keys });
    if ("failure" in usedKeys) return usedKeys;
    // A worker that is not as durable as demanded fails the write itself.
    return { states: resources.map((resource) => states.get(resource)), usedKeys, isDurable: true };
  }

  async #usedKeys(connection: WriteConnection, { resources, keys }: Asked): Promise<Map<string, UsedKey> | { readonly failure: Failure }> {
    const used = new Map<string, UsedKey>();
    const asked = [...new Set(keys.filter((key) => key !== undefined))];
    if (asked.length === 0) return used;
    // The key of a transaction is that of all its resources, and kept beside the lowest.
    const homes = new Map<string, string>();
    for (const [index, resource] of resources.entries()) {
      const key = keys[index] ?? "";
      if (resource < (homes.get(key) ?? "\uffff")) homes.set(key, resource);
    }
    const reply = await connection.run({ ...KEYS, values: [arrayOf([...new Set(homes.values())]), arrayOf(asked)] });
    if ("failure" in reply) return reply;
    for (const [resource, key, fingerprint, outcome] of reply.rows)
      if (homes.get(String(key)) === resource)
        used.set(String(key), { fingerprint: String(fingerprint), outcome: outcome as UsedKey["outcome"] });
    return used;
  }

  /** The weakest row lock, shard by shard: its commit comes after the one in doubt. */
  confirm(connection: WriteConnection, resources: readonly string[]): Promise<Reply> {
    const text = `select resource, palisade.demand_durability(resource, '${this.#form.durability}') from palisade.resources
      where resource = any($1::text[]) order by resource for key share`;
    return connection.transaction("palisade-citus-confirm", async (run) => {
      for (const some of byShard(resources, this.#shardOf)) await run({ name: "", text, values: [arrayOf(some)] });
      return [];
    });
  }

  /** Citus skips no locked rows: each is tried by itself. */
  async held(): Promise<readonly string[] | undefined> {
    return [];
  }

  /**
   * In a transaction that is undone, on a worker that answers. Where only a race was lost, the
   * statements can run.
   */
  async rehearse(connection: WriteConnection): Promise<string | undefined> {
    let fault = "";
    for (let attempt = 1; attempt <= REHEARSALS; attempt += 1) {
      const reply = await this.#rehearseOn(connection, `palisade/rehearsal/${attempt}`);
      if ("rows" in reply || ("code" in reply.failure && isRace(reply.failure.code))) return undefined;
      fault = reply.failure.error.message;
      if (!isOfWorker(reply.failure)) break;
    }
    return fault;
  }

  async #rehearseOn(connection: WriteConnection, resource: string): Promise<Reply> {
    const row: FencedRow = { request: { op: "put", resource, token: 1, value: "null" }, verified: true };
    return await connection.transaction("palisade-citus-rehearsal", async (run) => {
      await run(updateRows(this.#form, [row], [resource]));
      const recorded = recordRows(await run(upsertRows(this.#form, [row])), () => 1);
      if (recorded !== undefined) await run(recorded);
      await run(rememberKeys([{ resource, idempotency: { key: resource, fingerprint: "" }, rows: [] }]));
      await run({ ...STATES, values: [arrayOf([resource])] });
      await run({ ...KEYS, values: [arrayOf([resource]), arrayOf([resource])] });
      return undefined;
    });
  }
}

/** That it is away, or does not answer in time. */
function isOfWorker(failure: Failure): boolean {
  return "code" in failure ? failure.code === STATEMENT_TIMED_OUT : failure.reason === "unreachable";
}

function stateOf([, token, seq, rev, deleted]: Row): StoredState {
  return { token: Number(token), seq: Number(seq), rev: Number(rev), deleted: deleted === true };
}

function byShard<T>(items: readonly T[], shardOf: (item: T) => number): T[][] {
  const groups = new Map<number, T[]>();
  for (const item of items) {
    const shard = shardOf(item);
    groups.set(shard, [...(groups.get(shard) ?? []), item]);
  }
  return [...groups].sort(([a], [b]) => a - b).map(([, group]) => group);
}
