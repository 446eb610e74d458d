// Opens a fleet: its nodes, their admission, and what operators and stores ask of them. Nothing else of
// redis/ is imported from outside.
import type { OpenFleet } from "../protocol/fleet.js";
import { Admission } from "./admission/admission.js";
import { foundWithout, membersOf, reconfigure } from "./admission/members.js";
import { probeFleet } from "./doctor.js";
import { type FleetOptions, RedisFleet } from "./fleet.js";
import { listHeldOf, listResourcesOf, markNodes, reportOf } from "./reports.js";

/** Begins to connect to all nodes. */
export function openFleet(options: FleetOptions): OpenFleet {
  const fleet = new RedisFleet(options);
  const admission = new Admission(fleet);
  return {
    get nodes() {
      return fleet.members;
    },
    get maxTtlMs() {
      return fleet.maxTtlMs;
    },
    get refusal() {
      return fleet.refusal;
    },
    onChange(listener) {
      fleet.onChange = listener;
    },
    state: () => fleet.state,
    settled: () => admission.settled.then(() => fleet.state),
    listResources: () => listResourcesOf(fleet),
    listHeld: (prefix) => listHeldOf(fleet, prefix),
    report: (names) => reportOf(fleet, names),
    mark: (name, atLeast) => markNodes(fleet, name, atLeast),
    members: () => (fleet.roster === undefined ? undefined : membersOf(fleet.roster)),
    reconfigure: (change, limits) => reconfigure(fleet, change, limits),
    foundWithout: (absent) => foundWithout(fleet, absent),
    probe: () => probeFleet(fleet),
    close() {
      admission.close();
      return fleet.close();
    },
  };
}
