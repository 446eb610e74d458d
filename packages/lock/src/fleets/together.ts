// What several fleets say together: each call of an operator asks all of them, and tells which said
// what.
import type { Finding, FleetState } from "../protocol/fleet.js";
import { compareLists, type FleetList, namesIn } from "../protocol/fleet-list.js";
import type { FleetInspection, FleetsState } from "../protocol/fleets.js";
import type { HeldResource, HeldResources } from "../protocol/inspection.js";
import { homeIn } from "../protocol/routing.js";
import type { FleetPart } from "./change-list.js";
import { newestOf } from "./list-plan.js";
import { longestKnown, type Standings } from "./longest-lease.js";

export function stateOf(states: readonly FleetState[]): FleetState {
  const longest = states.flatMap(({ maxTtlMs }) => maxTtlMs ?? []);
  return {
    admitted: states.flatMap(({ admitted }) => admitted),
    quarantined: states.flatMap(({ quarantined }) => quarantined),
    unreachable: states.flatMap(({ unreachable }) => unreachable),
    refusal: states.find(({ refusal }) => refusal !== undefined)?.refusal,
    maxTtlMs: longest.length === 0 ? undefined : Math.min(...longest),
  };
}

/**
 * What is held, of all fleets that answer: the nodes of one that does not are silent. Rejects only
 * where none does.
 */
export async function heldIn(
  parts: readonly FleetPart[],
  asked: { readonly prefix?: string; readonly limit: number },
): Promise<HeldResources> {
  const lists = await Promise.allSettled(parts.map(({ locker }) => locker.listHeld(asked)));
  const failed = lists.find((list) => list.status === "rejected");
  if (failed !== undefined && lists.every(({ status }) => status === "rejected")) throw failed.reason;
  const found = new Map<string, HeldResource>();
  const silent: string[] = [];
  let more = false;
  let steps = 0;
  for (const [index, list] of lists.entries()) {
    const part = parts[index];
    if (list.status === "rejected") silent.push(...(part?.fleet.nodes.map(({ name }) => name) ?? []));
    else {
      silent.push(...list.value.silent);
      more ||= list.value.more;
      steps = Math.max(steps, list.value.steps);
      for (const held of list.value.held) {
        // While a lease is outwaited its resource may be in two lists: where it belongs counts.
        const isHome = homeIn(parts, held.resource) === part;
        if (part !== undefined && (isHome || !found.has(held.resource))) found.set(held.resource, { ...held, fleet: part.name });
      }
    }
  }
  const held = [...found.values()].sort((one, other) => (one.resource < other.resource ? -1 : 1));
  return { held: held.slice(0, asked.limit), more: more || held.length > asked.limit, silent, steps };
}

export function fleetsState(parts: ReadonlyMap<string, FleetPart>, standings: Standings): FleetsState {
  const newest = newestOf(standings);
  const fleets = [...parts.values()].map(({ name, fleet }): FleetInspection => {
    const standing = standings.get(name);
    if (standing === undefined) return { name, state: "silent", members: fleet.nodes.map(({ address }) => address) };
    const { list, members } = standing;
    const generation = fleet.members()?.generation ?? 0;
    const version = list === undefined ? {} : { version: list.version };
    return { name, state: stateIn({ name, list, newest }), ...version, generation, members };
  });
  return { version: newest?.version ?? 0, fleets };
}

interface OwnList {
  readonly name: string;
  readonly list: FleetList | undefined;
  readonly newest: FleetList | undefined;
}

function stateIn({ name, list, newest }: OwnList): FleetInspection["state"] {
  if (newest === undefined) return "used";
  const isListed = namesIn(newest).includes(name);
  if (newest.version > 0 && compareLists(list, newest) === 0) return isListed ? "used" : "unused";
  return isListed || (list !== undefined && namesIn(list).includes(name) && list.version > 0) ? "changing" : "unused";
}

/** What is wrong with the list, and with what the fleets know of each other. */
export function listFindings(parts: ReadonlyMap<string, FleetPart>, standings: Standings): readonly Finding[] {
  return [...changeFindings(fleetsState(parts, standings)), ...longestFindings(standings)];
}

/** If such a fleet is lost, its leases cannot be outwaited without a word of the operator. */
function longestFindings(standings: Standings): readonly Finding[] {
  const names = namesIn(newestOf(standings));
  return names.flatMap((name): Finding[] => {
    const { id, maxTtlMs } = standings.get(name) ?? {};
    if (id === undefined || maxTtlMs === undefined) return [];
    const others = names.filter((other) => other !== name && standings.get(other) !== undefined);
    const untold = others.filter((other) => longestKnown(standings.get(other), id) < maxTtlMs);
    if (untold.length === 0) return [];
    return [
      {
        severity: "warning",
        node: `fleet ${name}`,
        code: "fleets",
        message: `its leases may last ${maxTtlMs} ms, which an older version did not tell ${untold.join(" and ")}: if it is lost, how long its leases have to be outwaited is not known`,
        remedy: `Have it told, by repeating a change that is done (palisade fleets add ${name}).`,
      },
    ];
  });
}

/** A change that was not finished, and fleets that are configured and not used. */
function changeFindings({ fleets, version }: FleetsState): readonly Finding[] {
  return fleets.flatMap(({ name, state, version: own }): Finding[] => {
    if (state === "changing")
      return [
        {
          severity: "warning",
          node: `fleet ${name}`,
          code: "fleets",
          message: `it has ${own === undefined ? "no list" : `version ${own} of the list`} of the fleets, and the newest is ${version}: resources that move have no new holder`,
          remedy: "Finish the change by repeating it, or take it back by the opposite one (palisade fleets add or remove).",
        },
      ];
    if (state !== "unused") return [];
    return [
      {
        severity: "info",
        node: `fleet ${name}`,
        code: "fleets",
        message: "it is configured, and no resource belongs to it",
        remedy: `Add it (palisade fleets add ${name}), or leave it out where it was removed.`,
      },
    ];
  });
}
