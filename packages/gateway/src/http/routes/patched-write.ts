// Writes what a JSON patch makes of a document: it is read, changed here and stored over exactly
// the revision that was read, by the statement of every write. Nothing that another write stored in
// between is lost: then the patch is applied anew.
import type { Verdict, WriteRequest } from "../../fence/verdict.js";
import type { ReadResult } from "../../fenced-store.js";
import { type PatchOperation, patched } from "../json-patch.js";
import { NO_SUCH_REVISION } from "../preconditions.js";
import { Problem } from "../problem.js";
import type { StoreAccess } from "./read.js";

/**
 * How often a patch is applied. Only writes of the same lease, or of newer ones, come in between.
 */
const TRIES = 8;

interface PatchedWrite {
  readonly request: Omit<WriteRequest, "op" | "value">;
  readonly operations: readonly PatchOperation[];
  /** Of the document, before and after. */
  readonly limitBytes: number;
}

export async function writePatched({ store }: StoreAccess, { request, operations, limitBytes }: PatchedWrite): Promise<Verdict | Problem> {
  const { resource, expected } = request;
  for (let left = TRIES; left > 0; left--) {
    const read = await store.read(resource);
    if (read.kind === "unavailable") return read;
    const rev = read.kind === "found" ? read.rev : null;
    const made = read.kind === "found" && isExpected(expected, read.rev) ? patched(read.value, operations, limitBytes) : undefined;
    const verdict = await store.write({ ...request, op: "put", ...whatIsAsked(made, read) });
    if (verdict.kind !== "etag_mismatch") return verdict;
    // The store stands where it was read, so what was found there is the answer.
    if (verdict.currentRev !== rev) continue;
    if (made instanceof Problem) return new Problem(made.code, made.detail, { resource, ...made.facts });
    return unexpected(verdict, request, rev);
  }
  return { kind: "contention", resource, code: "race" };
}

/**
 * Where nothing can be stored the store is asked all the same, for what no revision meets: a stale
 * token comes before everything else, and the first try of a repeated request may have been stored.
 */
function whatIsAsked(made: string | Problem | undefined, read: ReadResult): Pick<WriteRequest, "value" | "expected"> {
  return typeof made === "string" && read.kind === "found"
    ? { value: made, expected: read.rev }
    : { value: "null", expected: NO_SUCH_REVISION };
}

function isExpected(expected: WriteRequest["expected"], rev: number): boolean {
  return expected === undefined || expected === "present" || expected === rev;
}

/** As for a merge patch: a condition that is not met comes before a document that is not there. */
function unexpected(mismatch: Verdict, { resource, expected }: PatchedWrite["request"], rev: number | null): Verdict {
  return rev === null && (expected === undefined || expected === "absent") ? { kind: "not_found", resource } : mismatch;
}
