// Which of several fleets serves a resource, by the list that its own nodes have agreed on (F1).
import { nameAll } from "../lease/messages.js";
import { LockError } from "../protocol/errors.js";
import type { Fleet, FleetState } from "../protocol/fleet.js";
import { compareLists, type FleetList, namesIn } from "../protocol/fleet-list.js";
import { homeIn } from "../protocol/routing.js";

/** Thrown by a fleet that does not serve these resources, or not yet: another one may. */
export class Elsewhere extends LockError {
  constructor(message: string, resources: readonly string[]) {
    super("LOCK_NO_QUORUM", message, { resources });
  }
}

/** It may serve them: which list is the newest is not known since it was met. */
export class Unheard extends Elsewhere {
  constructor(name: string, awaited: readonly string[], resources: readonly string[]) {
    const others =
      awaited.length === 0
        ? "the lists of the other fleets are being read"
        : `${awaited.length === 1 ? "fleet" : "fleets"} ${awaited.join(" and ")} ${awaited.length === 1 ? "has" : "have"} not said whether there is a newer list`;
    super(`fleet ${name} was met just now, and ${others}`, resources);
  }
}

interface OwnFleet {
  readonly name: string;
  readonly fleet: Pick<Fleet, "listing" | "state">;
  /** Of all that are configured. */
  readonly names: readonly string[];
}

/**
 * Why this fleet does not serve them; undefined if it does. `newest` is the newest list that this
 * process has heard of, from whichever fleet.
 */
export function whyElsewhere(
  { name, fleet, names }: OwnFleet,
  newest: FleetList | undefined,
  resources: readonly string[],
): LockError | undefined {
  const { id, list } = fleet.listing;
  if (list === undefined && names.length === 1) return undefined;
  // Never asked before it is known which fleet it is: another one may answer there.
  if (id === undefined) return new Elsewhere(notMet(name, fleet.state()), resources);
  if (list === undefined) {
    const others = names.filter((other) => other !== name).join(" and ");
    return new LockError(
      "FLEET_MISMATCH",
      `the nodes of fleet ${name} are used by themselves, and ${others} ${names.length === 2 ? "is" : "are"} configured here besides; ${nameFirst(name)}`,
      { resources },
    );
  }
  const [resource = ""] = resources;
  const known = compareLists(newest, list) > 0 ? newest : list;
  for (const one of known === list ? [list] : [list, known]) {
    const home = homeIn(one?.fleets ?? [], resource);
    if (home === undefined || home.id !== id)
      return new Elsewhere(notHere(name, { list: one ?? list, home: home?.name, resources }), resources);
  }
  return undefined;
}

/** What an operator does where one of several fleets has been used by itself. */
export function nameFirst(name: string): string {
  return `an operator has to name it first (palisade fleets name ${name}), and then to add the others`;
}

function notHere(
  name: string,
  { list, home, resources }: { readonly list: FleetList; readonly home: string | undefined; readonly resources: readonly string[] },
): string {
  if (list.version > 0)
    return `${nameAll(resources)} ${resources.length === 1 ? "belongs" : "belong"} to fleet ${home} by version ${list.version} of the list, which ${name} has`;
  const others = namesIn(list).filter((other) => other !== name);
  return `${name} was founded together with ${others.join(" and ")}, and is used when all of them say so`;
}

function notMet(name: string, { unreachable, quarantined }: FleetState): string {
  const causes = [
    ...unreachable.map(({ node, cause }) => `${node} (${cause})`),
    ...quarantined.map(({ node, reason }) => `${node} (${reason})`),
  ];
  return `fleet ${name} has not been met: ${causes.join(", ")}`;
}
