// The name of a resource, and which names a credential covers. A name is percent-decoded once, from
// the raw request line, and refused if any hop between client and gateway could have read it
// differently: the fence belongs to the exact name. It is never repaired, normalised or shortened.
import { MAX_NAME_BYTES } from "../fence/verdict.js";
import { Problem } from "./problems.js";

// Letters, digits and the other characters a path may hold unencoded (RFC 3986 pchar and "/"). All
// ASCII, so already NFC and one byte each.
const PLAIN_PATH = /^[A-Za-z0-9\-._~!$&'()*+,;=:@/]+$/;
const ENCODED_PATH = /^(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/]|%[0-9A-Fa-f]{2})+$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this looks for.
const CONTROL_CHARACTER = /[\u0000-\u001f\u007f-\u009f]/;
const LONE_SURROGATE = /\p{Surrogate}/u;
// Browsers and proxies resolve "." and ".." and merge "//": the request would arrive under another
// name.
const REWRITTEN_SEGMENT = /(?:^|\/)(?:\.{0,2})(?:\/|$)/;

/**
 * `encoded` is the part of the raw request target that stands for the name, before any decoding.
 */
export function parseResourceName(encoded: string): string | Problem {
  if (encoded.length === 0) return refuse("is empty");
  if (PLAIN_PATH.test(encoded)) return checkResourceName(encoded);
  if (!ENCODED_PATH.test(encoded)) return refuse(describeRaw(encoded));
  let name: string;
  try {
    name = decodeURIComponent(encoded);
  } catch {
    return refuse("does not decode to UTF-8 text");
  }
  return checkResourceName(name);
}

/** The rules for a name that needs no decoding, as it stands in the body of a transaction. */
export function checkResourceName(name: string): string | Problem {
  if (name.length === 0) return refuse("is empty");
  if (name.length > MAX_NAME_BYTES || Buffer.byteLength(name) > MAX_NAME_BYTES) {
    return refuse(`has ${Buffer.byteLength(name)} bytes; at most ${MAX_NAME_BYTES} are allowed`);
  }
  const characters = characterFault(name);
  if (characters !== undefined) return refuse(characters);
  if (REWRITTEN_SEGMENT.test(name)) return refuse('contains an empty, "." or ".." segment, which a browser or proxy would rewrite');
  return name;
}

/** What is wrong with the characters of a name or of a prefix of names, or undefined. */
export function characterFault(name: string): string | undefined {
  if (PLAIN_PATH.test(name)) return undefined;
  if (CONTROL_CHARACTER.test(name)) return "contains a control character";
  if (LONE_SURROGATE.test(name)) return "contains half of a surrogate pair";
  if (name.normalize("NFC") !== name) return "is not in Unicode normalization form C, so two spellings of it would be two resources";
  return undefined;
}

function describeRaw(encoded: string): string {
  if (/[?#]/.test(encoded)) return "is followed by a query or fragment; write ? as %3F and # as %23";
  if (/%(?![0-9A-Fa-f]{2})/.test(encoded)) return "contains a % that is not followed by two hexadecimal digits";
  return "contains a character that must be percent-encoded";
}

function refuse(reason: string): Problem {
  return new Problem("resource_name_invalid", `The resource name ${reason}.`);
}

// What a credential may do: an action on every resource whose name begins with a prefix, written as
// `write:orders/`. An empty prefix is every resource. A prefix is plain text, not a path:
// `write:orders` also covers `orders-archive/1`.

/**
 * `seal` raises a fence and returns the document, so it implies reading that document; `admin` is
 * for moving fences by hand and implies nothing else; `observe` is for the operator's page.
 */
export const actions = ["read", "write", "seal", "admin", "observe"] as const;
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

export function authorize(principal: Principal, action: Action, resource: string): Problem | undefined {
  if (allows(principal, action, resource)) return undefined;
  return new Problem("forbidden_scope", `The credential ${principal.id} has no ${action} scope that covers this resource.`);
}
