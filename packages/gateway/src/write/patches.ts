// Merge patches (RFC 7396). A patch is merged here, over the revision that its row has, and stored
// like a put where the row still has that revision; otherwise it has lost a race, and is merged anew.
// Both in one transaction: between two, a pooler may go over to another server, on which the same
// revision is another document.
import { setImmediate as nextTurn } from "node:timers/promises";
import { mergePatch } from "../fence/json.js";
import { TooLarge } from "../fence/verdict.js";
import { type Row, type Run, StatementError } from "../store/write-connection.js";
import { type FencedRow, refusalOf } from "./condition.js";
import { arrayOf, named } from "./statement.js";

const READ = named(
  "palisade-patched",
  "select resource, token, seq, rev, deleted, value::text from palisade.resources where resource = any($1::text[])",
);

/** Of the documents that are read at a time, and of all that one transaction makes. */
const PATCHED_BYTES = 64 * 1024 * 1024;
/** After merging so large a document, what else waits has its turn. */
const LARGE_BYTES = 1024 * 1024;

/** How many patches may go together, if each makes the largest document. */
export function mostPatches(documentLimitBytes: number): number {
  return Math.max(1, Math.floor(PATCHED_BYTES / documentLimitBytes));
}

export function isPatch({ request }: FencedRow): boolean {
  return request.op === "patch";
}

/** Refused whatever there is: where there is nothing to patch, and where there is something. */
export const rehearsedPatch: FencedRow = {
  request: { op: "patch", resource: "palisade/rehearsal", token: 1, expected: "absent", value: "{}" },
  verified: true,
};

/**
 * The rows, each patch with the document that it makes. Without those that are refused as their row
 * was read: nothing is stored of them.
 */
export async function mergedRows<R extends FencedRow>(run: Run, rows: readonly R[], documentLimitBytes: number): Promise<readonly R[]> {
  const patches = rows.filter(isPatch);
  const made = new Map<R, R>();
  let bytes = 0;
  for (let at = 0; at < patches.length; at += mostPatches(documentLimitBytes)) {
    const some = patches.slice(at, at + mostPatches(documentLimitBytes));
    const found = await run({ ...READ, values: [arrayOf(some.map(({ request }) => request.resource))] });
    const stored = new Map(found.map((row) => [row[0], row]));
    for (const row of some) {
      const merged = merge(row, stored.get(row.request.resource));
      if (merged === undefined) continue;
      made.set(row, merged);
      const size = Buffer.byteLength(merged.request.value ?? "");
      bytes += size;
      if (size > documentLimitBytes) throw tooLarge(row, size, documentLimitBytes);
      if (bytes > PATCHED_BYTES) throw tooLarge(row, bytes, PATCHED_BYTES);
      if (size > LARGE_BYTES) await nextTurn();
    }
  }
  return rows.flatMap((row) => (isPatch(row) ? (made.get(row) ?? []) : [row]));
}

function merge<R extends FencedRow>(row: R, stored: Row | undefined): R | undefined {
  if (stored === undefined) return undefined;
  const { request } = row;
  const [, token, seq, rev, deleted, document] = stored;
  const state = { token: Number(token), seq: Number(seq), rev: Number(rev), deleted: deleted === true };
  if (refusalOf(row, state).kind !== "admissible") return undefined;
  return { ...row, request: { ...request, expected: state.rev, value: mergePatch(String(document), request.value ?? "") } };
}

function tooLarge({ request: { resource } }: FencedRow, bytes: number, limitBytes: number): StatementError {
  const error = new TooLarge({ kind: "document_too_large", resource, bytes, limitBytes });
  return new StatementError({ kind: "retry_alone", code: "document_too_large", error });
}

/** What the statement answers, with the documents that patches have made. */
export function documentsOf(rows: readonly FencedRow[], accepted: readonly Row[]): readonly Row[] {
  const documents = new Map(rows.filter(isPatch).map(({ request }) => [request.resource, request.value]));
  return accepted.map((row) => {
    const document = documents.get(String(row[0]));
    return document === undefined ? row : row.with(4, document);
  });
}
