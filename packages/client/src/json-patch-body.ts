// The body of a JSON Patch. What its operations say is judged by the gateway.
import { shown } from "./misuse.js";
import type { JsonPatchOperation } from "./options.js";
import { jsonTextOf } from "./request-format.js";

export function jsonPatchText(operations: readonly JsonPatchOperation[]): string {
  if (!Array.isArray(operations))
    throw new TypeError(
      'a JSON patch is an array, as in [{ op: "replace", path: "/status", value: "paid" }]; a merge patch goes to patch()',
    );
  // Array.from also visits the holes, which map() would leave out.
  return `[${Array.from(operations, textOf).join(",")}]`;
}

/** What is judged is what JSON.stringify would send: what toJSON returns, and own members only. */
function textOf(operation: Told, index: number): string {
  const told = typeof operation?.toJSON === "function" ? operation.toJSON(String(index)) : operation;
  if (typeof told !== "object" || told === null)
    throw new TypeError(`operation ${index} of a JSON patch must be an object, as { op: "remove", path: "/a" }, not ${shown(told)}`);
  const { toJSON: _, ...sent } = told as Told & object;
  if (typeof sent.op !== "string")
    throw new TypeError(`operation ${index} of a JSON patch has no op of its own: add, remove, replace, move, copy or test`);
  if (!("value" in sent)) return JSON.stringify(sent);
  const { value, ...rest } = sent;
  return `${JSON.stringify(rest).slice(0, -1)},"value":${jsonTextOf(value)}}`;
}

/** An operation as it comes from a caller without types. */
type Told = { readonly op?: unknown; readonly value?: unknown; readonly toJSON?: (index: string) => unknown } | null | undefined;
