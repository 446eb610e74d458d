// The fenced statement on a plain connection, in both forms, so that a test can hold it open in a
// transaction, race it, or read its plan.
import type pg from "pg";
import type { TransactionOperation } from "../../src/fence/verdict.js";
import { type FencedRow, fencedWrite, parametersOf } from "../../src/guard/fenced-statement.js";

/** any: INSERT … ON CONFLICT. known: UPDATE, for resources that have a row. */
export type Way = "any" | "known";
export const ways: readonly Way[] = ["any", "known"];

export const plainForm = { scope: "each", keys: "none", history: "off", durability: "local", documentLimitBytes: 16_777_216 } as const;

export function statementText(way: Way): string {
  return fencedWrite({ ...plainForm, rows: way }).text;
}

export interface Run {
  readonly client: pg.Client;
  readonly way?: Way;
}

/** The names of the resources it accepted. */
export async function runStatement({ client, way = "any" }: Run, ...operations: TransactionOperation[]): Promise<string[]> {
  const { rows } = await client.query<{ resource: string }>(statementText(way), statementValues(operations));
  return rows.map((row) => row.resource);
}

export function statementValues(operations: readonly TransactionOperation[]): (string | Buffer)[] {
  return parametersOf(operations.map((request): FencedRow => ({ request, verified: true })));
}

export function put(resource: string, token: number, value: string): TransactionOperation {
  return { op: "put", resource, token, value };
}

export async function storedValue(client: pg.Client, resource: string): Promise<unknown> {
  const { rows } = await client.query<{ value: string | null }>("select value::text as value from palisade.resources where resource = $1", [
    resource,
  ]);
  return rows[0]?.value;
}
