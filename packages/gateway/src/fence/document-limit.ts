// What the error says of a document that a patch made too large: measured by the statement that
// stores it. What is put is measured before any I/O (write-request.ts).
import pg from "pg";
import type { DocumentTooLarge } from "./verdict.js";

/** The SQLSTATE of palisade.within_limit. */
export const DOCUMENT_TOO_LARGE = "PLS08";

/** From the error of the statement: its detail is the size, a space, and the resource. */
export function tooLargeAfterPatch(error: Error, limitBytes: number): DocumentTooLarge {
  const detail = (error instanceof pg.DatabaseError ? error.detail : undefined) ?? "";
  const end = detail.indexOf(" ");
  return { kind: "document_too_large", resource: detail.slice(end + 1), bytes: Number(detail.slice(0, end)), limitBytes };
}
