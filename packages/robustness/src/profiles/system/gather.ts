// Reads what the processes of a run wrote down and what the store kept, when everybody has gone. Judges nothing.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Document } from "./document.js";
import { type Entry, type Final, type JournalOf, operationsOf, type SystemHistory, stallsOf, tenuresOf } from "./history.js";
import { linesOf } from "./journal.js";
import type { StoreUnderFire } from "./store.js";
import { type Mode, rows, untouched } from "./words.js";

const NAME = /^(.*?)\.(\d+)\.jsonl$/;

/** c3.1.jsonl is what the second process in the place of c3 wrote. */
export function journalName(author: string, life: number): string {
  return `${author}.${life}.jsonl`;
}

export async function gather(folder: string, store: StoreUnderFire, mode: Mode): Promise<SystemHistory> {
  const journals = readdirSync(folder).flatMap((file) => journalOf(folder, file));
  const kept = mode === "fenced" ? await keptBehindFence(store) : await keptWithoutFence(store);
  const unlocked: Record<string, number> = {};
  for (const { lines } of journals)
    for (const line of lines) if (line.e === "unlocked") unlocked[line.code] = (unlocked[line.code] ?? 0) + 1;
  return {
    operations: journals.flatMap(operationsOf),
    tenures: journals.flatMap(tenuresOf),
    stalls: journals.flatMap(stallsOf),
    ...kept,
    unlocked,
  };
}

function journalOf(folder: string, file: string): JournalOf[] {
  const [, author, life] = NAME.exec(file) ?? [];
  if (author === undefined || life === undefined) return [];
  const client = Number(/^c(\d+)$/.exec(author)?.[1] ?? Number.NaN) * 1_000 + Number(life);
  return [{ author: `${author}.${life}`, client, lines: linesOf(readFileSync(join(folder, file), "utf8")) }];
}

type Kept = Pick<SystemHistory, "entries" | "finals" | "strangeFences">;

async function keptBehindFence(store: StoreUnderFire): Promise<Kept> {
  const entries = await store.query<Entry & { seq: number }>(
    "select resource, rev::float8, token::float8, seq::float8, op from palisade.history",
  );
  const guarded = await store.query<Entry>(
    "select resource, rev::float8, token::float8, 0::float8 as seq, by, 'guarded' as op from account_entries",
  );
  const fences = await store.query<{ resource: string; rev: number; token: number; value: Document | null }>(
    "select resource, rev::float8, token::float8, value from palisade.resources",
  );
  const accounts = await store.query<{ resource: string; rev: number; value: Document }>(
    "select resource, rev::float8, value from accounts",
  );
  const isRow = (name: string): boolean => (rows as readonly string[]).includes(name);
  const isStrange = (name: string): boolean => (untouched as readonly string[]).includes(name);
  const finals: Final[] = [
    ...fences
      .filter(({ resource }) => !isRow(resource))
      .map(({ resource, rev, token, value }) => ({ resource, rev, token, document: value })),
    ...accounts.map(({ resource, rev, value }) => {
      return { resource, rev, token: fences.find((fence) => fence.resource === resource)?.token, document: value };
    }),
  ];
  return {
    entries: [...entries, ...guarded],
    finals: finals.filter(({ resource }) => !isStrange(resource)),
    strangeFences: fences.filter(({ resource }) => isStrange(resource)),
  };
}

async function keptWithoutFence(store: StoreUnderFire): Promise<Kept> {
  const entries = await store.query<Entry>("select resource, rev::float8, token::float8, seq::float8, op from bare_history");
  const finals = await store.query<{ resource: string; rev: number; value: Document | null }>(
    "select resource, rev::float8, value from bare_documents",
  );
  return {
    entries,
    finals: finals.map(({ resource, rev, value }) => ({ resource, rev, token: undefined, document: value })),
    strangeFences: [],
  };
}
