// The fenced statement on a plain connection, in all forms, so that a test can hold it open in a
// transaction, race it, or read its plan.
import type pg from "pg";
import type { WriteRequest } from "../../src/fence/verdict.js";
import { type FencedRow, fencedWrite, parametersOf, valuesOf } from "../../src/write/statement.js";

/**
 * any: INSERT … ON CONFLICT. known: UPDATE, for resources that have a row. one: a single write with
 * values in place of arrays.
 */
export type Way = "any" | "known" | "any one" | "known one";
export const ways: readonly Way[] = ["any", "known", "any one", "known one"];

export const plainForm = { scope: "each", history: "off", durability: "local" } as const;

const isOne = (way: Way): boolean => way.endsWith("one");

export function statementText(way: Way): string {
  return fencedWrite({ ...plainForm, rows: way.startsWith("any") ? "any" : "known", scope: isOne(way) ? "one" : "each" }).text;
}

export interface Run {
  readonly client: pg.Client;
  readonly way?: Way;
}

/** The names of the resources it accepted. */
export async function runStatement({ client, way = "any" }: Run, ...operations: WriteRequest[]): Promise<string[]> {
  const accepted: string[] = [];
  for (const part of isOne(way) ? operations.map((operation) => [operation]) : [operations]) {
    const { rows } = await client.query<{ resource: string }>(statementText(way), statementValues(part, { way }));
    accepted.push(...rows.map((row) => row.resource));
  }
  return accepted;
}

export function statementValues(
  operations: readonly WriteRequest[],
  { way = "any", verified = true }: { readonly way?: Way; readonly verified?: boolean } = {},
): (string | Buffer | null)[] {
  const rows = operations.map((request): FencedRow => ({ request, verified }));
  const [only] = rows;
  return only !== undefined && isOne(way) ? valuesOf(only) : parametersOf(rows);
}

export function put(resource: string, token: number, value: string): WriteRequest {
  return { op: "put", resource, token, value };
}

export async function storedValue(client: pg.Client, resource: string): Promise<unknown> {
  const { rows } = await client.query<{ value: string | null }>("select value::text as value from palisade.resources where resource = $1", [
    resource,
  ]);
  return rows[0]?.value;
}
