// The body of a JSON Patch. What its operations say is judged by the gateway.
import { shown } from "./misuse.js";
import type { JsonPatchOperation } from "./options.js";
import { jsonTextOf } from "./request-format.js";

export function jsonPatchText(operations: readonly JsonPatchOperation[]): string {
  if (!Array.isArray(operations))
    throw new TypeError(
      'a JSON patch is an array, as in [{ op: "replace", path: "/status", value: "paid" }]; a merge patch goes to patch()',
    );
  return `[${operations.map((operation, index) => textOf(operation, index)).join(",")}]`;
}

function textOf(operation: JsonPatchOperation, index: number): string {
  if (typeof operation !== "object" || operation === null)
    throw new TypeError(`operation ${index} of a JSON patch must be an object, as { op: "remove", path: "/a" }, not ${shown(operation)}`);
  if (typeof operation.op !== "string")
    throw new TypeError(`operation ${index} of a JSON patch has no op: add, remove, replace, move, copy or test`);
  if (!("value" in operation)) return JSON.stringify(operation);
  const { value, ...rest } = operation;
  return `${JSON.stringify(rest).slice(0, -1)},"value":${jsonTextOf(value)}}`;
}
