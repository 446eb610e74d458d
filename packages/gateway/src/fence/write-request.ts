// Whether a request may be sent to the store at all. Misuse is a RangeError or TypeError before any
// I/O. The HTTP layer has its own checks with better messages; whatever passes here reaches
// Postgres.
import { checkName, checkText, checkToken, isCount, isName, MAX_NAME_BYTES } from "@palisade/guard/gateway";
import {
  type CallRequest,
  type DocumentTooLarge,
  type Idempotency,
  MAX_TOKEN,
  type TransactionOperation,
  type TransactionRequest,
  type WriteRequest,
} from "./verdict.js";

export { checkName, checkText, checkToken, isName, MAX_NAME_BYTES };

const operations: ReadonlySet<string> = new Set(["put", "patch", "delete", "seal"]);
export const MAX_OPERATIONS = 1_000;

export function checkWrite(request: WriteRequest): void {
  checkOperation(request);
  checkIdempotency(request.idempotency);
  if (request.idempotency !== undefined && request.op === "seal")
    throw new TypeError("a seal may be repeated anyway and takes no idempotency key");
}

export function checkTransaction({ operations: list, idempotency }: TransactionRequest): void {
  if (list.length === 0 || list.length > MAX_OPERATIONS)
    throw new RangeError(`a transaction has 1 to ${MAX_OPERATIONS} operations, not ${list.length}`);
  for (const operation of list) checkOperation(operation);
  if (new Set(list.map((operation) => operation.resource)).size < list.length)
    throw new TypeError("a resource may appear once in a transaction");
  checkIdempotency(idempotency);
}

export function checkCall({ leases, holder }: CallRequest): void {
  if (leases.length === 0 || leases.length > MAX_OPERATIONS)
    throw new RangeError(`a call has 1 to ${MAX_OPERATIONS} leases, not ${leases.length}`);
  for (const { resource, token, seq } of leases) checkOperation({ op: "seal", resource, token, seq, holder });
  if (new Set(leases.map(({ resource }) => resource)).size < leases.length) throw new TypeError("a resource may appear once in a call");
}

/** Documents that are too large to be put, as they were sent, with their places in the list. */
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

function checkOperation({ op, resource, token, seq, expected, value, holder }: TransactionOperation): void {
  if (!operations.has(op)) throw new TypeError(`there is no operation ${String(op)}`);
  checkName(resource);
  checkToken(token);
  if (seq !== undefined && !isCount(seq))
    throw new RangeError(`a sequence number is an integer from 1 to ${MAX_TOKEN}, not ${String(seq)}`);
  if (typeof expected === "number" && !isCount(expected))
    throw new RangeError(`a revision is an integer from 1 to ${MAX_TOKEN}, not ${expected}`);
  if (expected !== undefined && op === "seal") throw new TypeError("a seal is never conditional");
  const carriesDocument = op === "put" || op === "patch";
  if (carriesDocument !== (typeof value === "string")) throw new TypeError(`${op} ${carriesDocument ? "needs" : "takes no"} document`);
  if (holder !== undefined) checkText({ text: holder, what: "a holder", maxBytes: MAX_NAME_BYTES });
}

function checkIdempotency(idempotency: Idempotency | undefined): void {
  if (idempotency === undefined) return;
  checkText({ text: idempotency.key, what: "an idempotency key", maxBytes: MAX_NAME_BYTES });
  checkText({ text: idempotency.fingerprint, what: "a fingerprint", maxBytes: MAX_NAME_BYTES });
}
