// An operation of a transaction as JSON: its document stays text, so that its numbers keep every
// digit.
import type { Operation } from "./options.js";
import { jsonTextOf } from "./request-format.js";

export function operationText(operation: Operation): string {
  const { value, ...head } = operation as Operation & { readonly value?: unknown };
  const text = JSON.stringify(head);
  return operation.op === "put" || operation.op === "patch" ? `${text.slice(0, -1)},"value":${jsonTextOf(value)}}` : text;
}
