// What a credential may do: an action on every resource whose name begins with a prefix, written as
// `write:orders/`. An empty prefix is every resource. A prefix is plain text, not a path:
// `write:orders` also covers `orders-archive/1`.
import { MAX_NAME_BYTES } from "../fence/write-request.js";
import { characterFault } from "./resource-name.js";

/**
 * `seal` raises a fence and returns the document, so it implies reading that document; `admin` is
 * for moving fences by hand and implies nothing else; `observe` is for the operator's page. The
 * prefix of `call` is one of the names of functions, as in `call:billing.`; which resources a call
 * may guard is what `write` says.
 */
export const actions = ["read", "write", "seal", "admin", "call", "observe"] as const;
export type Action = (typeof actions)[number];

export interface Scope {
  readonly action: Action;
  readonly prefix: string;
}

/** The caller of a request. `id` is safe to log; it is not the credential. */
export interface Principal {
  readonly id: string;
  readonly scopes: readonly Scope[];
}

export const everything: readonly Scope[] = actions.map((action) => ({ action, prefix: "" }));

/** The caller before its credential has been checked. */
export const noPrincipal: Principal = { id: "nobody", scopes: [] };

/** Undefined when the text is not a scope. */
export function parseScope(text: string): Scope | undefined {
  const separator = text.indexOf(":");
  const action = actions.find((known) => known === text.slice(0, separator));
  const prefix = text.slice(separator + 1);
  if (separator === -1 || action === undefined) return undefined;
  if (Buffer.byteLength(prefix) > MAX_NAME_BYTES || characterFault(prefix) !== undefined) return undefined;
  return { action, prefix };
}

export function allows(principal: Principal, action: Action, resource: string): boolean {
  for (const scope of principal.scopes) {
    if (scope.action === action && resource.startsWith(scope.prefix)) return true;
  }
  return false;
}
