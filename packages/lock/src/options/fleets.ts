// The option `fleets`: several fleets by name, each with its nodes; checked before any I/O.
import { createHash } from "node:crypto";
import type { FleetsChange } from "../protocol/fleets.js";
import type { Resources } from "../protocol/locker.js";
import type { NodeSource } from "../protocol/node-source.js";
import { isOneKey } from "../protocol/routing.js";
import { readResources } from "./lease-request.js";
import { addressOf } from "./node-source.js";
import { knownOptions, shown, wholeNumber } from "./option.js";
import { type LockerOptions, type Policy, readPolicy } from "./policy.js";

export interface FleetOptions {
  readonly name: string;
  readonly nodes: readonly NodeSource[];
  readonly policy: Policy;
}

export interface FleetsOptions {
  /** In the order of their names. */
  readonly fleets: readonly FleetOptions[];
  /** The same for all lockers with the same names and addresses. */
  readonly key: string;
}

const NAME = /^[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?$/;
const MAX_FLEETS = 64;
const DAY_MS = 86_400_000;

/** undefined: the option was not given. */
export function readFleets(options: LockerOptions): FleetsOptions | undefined {
  if (typeof options !== "object" || options === null || options.fleets === undefined) return undefined;
  const { fleets: given, ...rest } = options;
  if (rest.nodes !== undefined) throw new TypeError("createLocker takes nodes, or fleets by name, and not both");
  if (typeof given !== "object" || given === null || Array.isArray(given))
    throw new TypeError(
      `fleets must be an object of names, each with its nodes ({ west: ["redis://…"], east: […] }), not ${shown(given)}: a fleet without a name could not be told from another when their order changes`,
    );
  const names = Object.keys(given).sort();
  if (names.length === 0 || names.length > MAX_FLEETS)
    throw new RangeError(`fleets must name 1 to ${MAX_FLEETS} fleets, not ${names.length}`);
  const fleets = names.map((name) => readFleet(name, given[name] ?? [], rest));
  const places = new Map<string, string>();
  for (const { name, nodes } of fleets) {
    for (const address of nodes.map(addressOf)) {
      const twin = places.get(address);
      if (twin !== undefined)
        throw new RangeError(`${address} is a node of ${twin} and of ${name}: one server must not belong to two fleets`);
      places.set(address, name);
    }
  }
  const text = JSON.stringify([...places].sort(([one], [other]) => (one < other ? -1 : 1)));
  return { fleets, key: createHash("sha256").update(text).digest("base64url").slice(0, 16) };
}

function readFleet(name: string, nodes: readonly NodeSource[], rest: Omit<LockerOptions, "fleets">): FleetOptions {
  if (!NAME.test(name))
    throw new RangeError(`a fleet is named with 1 to 32 of a–z 0–9 -, with no - at either end, not ${JSON.stringify(name)}`);
  try {
    return { name, nodes, policy: readPolicy({ ...rest, nodes }) };
  } catch (error) {
    if (error instanceof TypeError || error instanceof RangeError) error.message = `fleet ${name}: ${error.message}`;
    throw error;
  }
}

/** TypeError or RangeError if it is not one change. */
export function readFleetsChange(change: unknown, names: readonly string[]): FleetsChange {
  const given = knownOptions<{ name: 0; add: 0; remove: 0; lost: 0 }>("changeFleets", change, ["name", "add", "remove", "lost"]);
  const kinds = Object.keys(given).sort().join(" ");
  if (!["name", "add", "remove", "lost remove"].includes(kinds))
    throw new TypeError(`changeFleets makes one change at a time: name, add, or remove, not ${kinds === "" ? "nothing" : kinds}`);
  const subject = given.name ?? given.add ?? given.remove;
  const subjects: readonly unknown[] = kinds.includes("remove") && Array.isArray(subject) ? subject : [subject];
  const known = subjects.filter((name) => typeof name === "string" && names.includes(name));
  if (known.length < subjects.length || known.length === 0)
    throw new RangeError(
      `${shown(subjects.find((name) => !known.includes(name)) ?? subject)} is no fleet of this locker, which has ${names.join(", ")}`,
    );
  if (given.lost !== undefined && typeof given.lost !== "boolean") readLongest(given.lost);
  if (subjects.length > 1 && (given.lost === undefined || given.lost === false))
    throw new TypeError("fleets are taken away one after the other; only such as are lost go together (lost: true)");
  return change as FleetsChange;
}

function readLongest(lost: unknown): void {
  if (typeof lost !== "object") throw new TypeError(`lost must be a boolean, or { maxTtlMs }, not ${shown(lost)}`);
  const { maxTtlMs } = knownOptions<{ maxTtlMs: 0 }>("lost", lost, ["maxTtlMs"]);
  wholeNumber("lost.maxTtlMs", maxTtlMs, { min: 1, max: DAY_MS });
}

/**
 * URLs as programs are given them in one variable: those of one fleet, or each with the name of its
 * fleet before it, `west=redis://…`.
 */
export function nodesOrFleets(urls: readonly string[]): Pick<LockerOptions, "nodes"> | Pick<LockerOptions, "fleets"> {
  const split = urls.map((url) => /^(?:([^=/]*)=)?(.*)$/s.exec(url) ?? []);
  if (split.every(([, name]) => name === undefined)) return { nodes: urls };
  if (split.some(([, name]) => name === undefined))
    throw new TypeError("either all nodes have the name of their fleet before them (west=redis://…), or none has");
  const fleets = new Map<string, string[]>();
  for (const [, name = "", url = ""] of split) fleets.set(name, [...(fleets.get(name) ?? []), url]);
  return { fleets: Object.fromEntries(fleets) };
}

/** TypeError or RangeError, before any I/O, unless one fleet will always have all of them. */
export function ofOneKey(given: Resources): readonly string[] {
  const resources = readResources(given);
  if (isOneKey(resources)) return resources;
  const [one = "", other = ""] = resources;
  throw new RangeError(
    `${JSON.stringify(one)} and ${JSON.stringify(other)} may belong to different fleets, and a lease lives in one: give all resources of a lease the same part in braces, such as ${JSON.stringify(`{${one.slice(0, 20)}}`)}, by which the fleet is chosen`,
  );
}
