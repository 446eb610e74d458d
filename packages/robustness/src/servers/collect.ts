// Reads the journals of the workers and the rows of the store, when all workers have left.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Entry, type Final, type History, type JournalOf, leasesOf, linesOf, operationsOf, pausesOf } from "../history/history.js";
import { counted, type Document } from "../history/records.js";
import type { SystemStore } from "./system-store.js";

const JOURNAL = /^(.*?)\.(\d+)\.jsonl$/;

/** c3.1.jsonl belongs to the second process in the place of c3. */
export function journalName(worker: string, startNumber: number): string {
  return `${worker}.${startNumber}.jsonl`;
}

/** How a client is numbered in leases and pauses. */
export function clientNumber(slot: number, startNumber: number): number {
  return slot * 1_000 + startNumber;
}

export function collectJournals(folder: string): Pick<History, "operations" | "leases" | "pauses" | "unlocked"> {
  const journals = readdirSync(folder).flatMap((file) => readJournal(folder, file));
  const codes = journals.flatMap(({ lines }) => lines.flatMap((line) => (line.e === "unlocked" ? [line.code] : [])));
  return {
    operations: journals.flatMap(operationsOf),
    leases: journals.flatMap(leasesOf),
    pauses: journals.flatMap(pausesOf),
    unlocked: Object.fromEntries(counted(codes)),
  };
}

function readJournal(folder: string, file: string): JournalOf[] {
  const [, worker, startNumber] = JOURNAL.exec(file) ?? [];
  if (worker === undefined || startNumber === undefined) return [];
  const slot = Number(/^c(\d+)$/.exec(worker)?.[1] ?? Number.NaN);
  const lines = linesOf(readFileSync(join(folder, file), "utf8"));
  return [{ author: `${worker}.${startNumber}`, client: clientNumber(slot, Number(startNumber)), lines }];
}

type Stored = Pick<History, "entries" | "finals" | "strangeFences">;

/** Documents and rows of guarded tables. `intruded`: resources that only intruders name. */
export async function collectFenced(
  store: Pick<SystemStore, "query">,
  rows: readonly string[],
  intruded: readonly string[],
): Promise<Stored> {
  const entries = await store.query<Entry>("select resource, rev::float8, token::float8, seq::float8, op from palisade.history");
  const guarded = await store.query<Entry>(
    "select resource, rev::float8, token::float8, 0::float8 as seq, by, 'guarded' as op from account_entries",
  );
  const fences = await store.query<{ resource: string; rev: number; token: number; value: Document | null }>(
    "select resource, rev::float8, token::float8, value from palisade.resources",
  );
  const accounts = await store.query<{ resource: string; rev: number; value: Document }>(
    "select resource, rev::float8, value from accounts",
  );
  const documents = fences.filter(({ resource }) => !rows.includes(resource));
  const finals: Final[] = [
    ...documents.map(({ resource, rev, token, value }) => ({ resource, rev, token, document: value })),
    ...accounts.map(({ resource, rev, value }) => {
      return { resource, rev, token: fences.find((fence) => fence.resource === resource)?.token, document: value };
    }),
  ];
  return {
    entries: [...entries, ...guarded],
    finals: finals.filter(({ resource }) => !intruded.includes(resource)),
    strangeFences: fences.filter(({ resource }) => intruded.includes(resource)),
  };
}

export async function collectUnfenced(store: Pick<SystemStore, "query">): Promise<Stored> {
  const entries = await store.query<Entry>("select resource, rev::float8, token::float8, seq::float8, op from unfenced_history");
  const finals = await store.query<{ resource: string; rev: number; value: Document | null }>(
    "select resource, rev::float8, value from unfenced_documents",
  );
  return {
    entries,
    finals: finals.map(({ resource, rev, value }) => ({ resource, rev, token: undefined, document: value })),
    strangeFences: [],
  };
}
