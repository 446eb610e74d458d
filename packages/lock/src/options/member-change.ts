// The arguments of changing a fleet, checked before any I/O.
import type { ChangeLimits } from "../protocol/change-limits.js";
import type { MemberChange } from "../protocol/fleet.js";
import { addressOf, checkSource } from "./node-source.js";
import { knownOptions, shown, wellFormedText, wholeNumber } from "./option.js";

const DAY_MS = 86_400_000;
const MAX_NAME_BYTES = 512;

const kinds = "add, remove, replace with by, or maxTtlMs";

/** TypeError or RangeError if it is not one change. */
export function readMemberChange(change: unknown): MemberChange {
  const given = knownOptions<{ add: 0; remove: 0; replace: 0; by: 0; maxTtlMs: 0 }>("reconfigure", change, [
    "add",
    "remove",
    "replace",
    "by",
    "maxTtlMs",
  ]);
  const names = Object.keys(given).sort().join(" ");
  if (names === "add") return { add: readSource("add", given.add) };
  if (names === "remove") return { remove: wellFormedText("remove", given.remove, MAX_NAME_BYTES) };
  if (names === "by replace") return { replace: wellFormedText("replace", given.replace, MAX_NAME_BYTES), by: readSource("by", given.by) };
  if (names === "maxTtlMs") return { maxTtlMs: wholeNumber("maxTtlMs", given.maxTtlMs, { min: 1, max: DAY_MS }) };
  throw new TypeError(`reconfigure makes one change at a time: ${kinds}, not ${names === "" ? "nothing" : names}`);
}

function readSource(name: string, source: unknown): Extract<MemberChange, { readonly add: unknown }>["add"] {
  checkSource(source, name);
  const checked = source as Extract<MemberChange, { readonly add: unknown }>["add"];
  addressOf(checked);
  return checked;
}

export function readChangeLimits(options: unknown): ChangeLimits {
  const { waitMs, onWait } = knownOptions<{ waitMs: 0; onWait: 0 }>("reconfigure", options, ["waitMs", "onWait"]);
  if (onWait !== undefined && typeof onWait !== "function") throw new TypeError(`onWait must be a function, not ${shown(onWait)}`);
  const limits = { onWait: onWait as ChangeLimits["onWait"] };
  return waitMs === undefined ? limits : { ...limits, waitMs: wholeNumber("waitMs", waitMs, { min: 0, max: Number.POSITIVE_INFINITY }) };
}

export function readNames(names: unknown): readonly string[] {
  if (!Array.isArray(names) || names.length === 0)
    throw new TypeError(`foundWithout needs an array with the addresses of nodes, not ${shown(names)}`);
  return names.map((name, index) => wellFormedText(`nodes[${index}]`, name, MAX_NAME_BYTES));
}
