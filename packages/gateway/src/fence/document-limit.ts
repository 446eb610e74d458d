// Whether a document is larger than one may be. What is put is measured as it was sent, before any
// I/O; what a patch makes of a document is measured by the statement that stores it.
import pg from "pg";
import type { DocumentTooLarge, TransactionOperation } from "./verdict.js";

/** The SQLSTATE of palisade.within_limit. */
export const DOCUMENT_TOO_LARGE = "PLS08";

/** With their places in the list. */
export function tooLargeToPut(
  operations: readonly TransactionOperation[],
  limitBytes: number,
): { readonly index: number; readonly refusal: DocumentTooLarge }[] {
  return operations.flatMap(({ op, resource, value = "" }, index) => {
    // A character has at most three bytes in UTF-8 for each unit of length.
    if (op !== "put" || value.length * 3 <= limitBytes) return [];
    const bytes = Buffer.byteLength(value);
    return bytes > limitBytes ? [{ index, refusal: { kind: "document_too_large", resource, bytes, limitBytes } }] : [];
  });
}

/** From the error of the statement: its detail is the size, a space, and the resource. */
export function tooLargeAfterPatch(error: Error, limitBytes: number): DocumentTooLarge {
  const detail = (error instanceof pg.DatabaseError ? error.detail : undefined) ?? "";
  const end = detail.indexOf(" ");
  return { kind: "document_too_large", resource: detail.slice(end + 1), bytes: Number(detail.slice(0, end)), limitBytes };
}
