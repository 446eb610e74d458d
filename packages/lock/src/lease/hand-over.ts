// A lease as text, from one process to another. It contains the owner's secret and no instant:
// clocks of two machines differ, so the adopting process asks the nodes anew instead of believing
// another machine's deadline.
import { readResources } from "../options/lease-request.js";
import { knownOptions, tokenOption, wellFormedText, wholeNumber } from "../options/option.js";

export interface HandedOver {
  readonly namespace: string;
  readonly resources: readonly string[];
  readonly owner: string;
  readonly token: number;
  readonly ttlMs: number;
}

const FORMAT = 1;

export function writeHandOver(lease: HandedOver): string {
  const { namespace, resources, owner, token, ttlMs } = lease;
  return JSON.stringify({ palisade: FORMAT, namespace, resources, owner, token, ttlMs });
}

/** What the text says, or TypeError or RangeError if it is not the text of a lease. */
export function readHandOver(text: string): HandedOver {
  const fields = parse(text);
  const given = knownOptions<HandedOver & { palisade: number }>("the text of a lease", fields, [
    "palisade",
    "namespace",
    "resources",
    "owner",
    "token",
    "ttlMs",
  ]);
  if (given.palisade !== FORMAT) throw new TypeError(`this is not the text of a lease in format ${FORMAT}`);
  return {
    namespace: wellFormedText("namespace", given.namespace, 128),
    resources: readResources(given.resources),
    owner: readOwner(given.owner),
    token: tokenOption(given.token),
    ttlMs: wholeNumber("ttlMs", given.ttlMs, { min: 1, max: Number.MAX_SAFE_INTEGER }),
  };
}

function readOwner(owner: unknown): string {
  const text = wellFormedText("owner", owner, 64);
  // In a lock's value the owner ends at the first bar.
  if (text.includes("|")) throw new TypeError("the owner in the text of a lease has a bar in it");
  return text;
}

function parse(text: string): unknown {
  if (typeof text !== "string") throw new TypeError("the text of a lease must be a string");
  let fields: unknown;
  try {
    fields = JSON.parse(text);
  } catch {
    // The parser's message would quote the text, and with it the owner's secret.
  }
  if (typeof fields !== "object" || fields === null || Array.isArray(fields)) throw new TypeError("this is not the text of a lease");
  return fields;
}
