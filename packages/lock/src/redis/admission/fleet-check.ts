// May this locker use these nodes? Compares what the nodes recorded at their admission with how the
// locker is configured, anew with every status that was read. Finds records of an unknown format,
// another fleet, one server twice and too long a lease; not an empty server in the place of a member
// (spec/assumptions.md).
import type { NodeEvent } from "../../protocol/events.js";
import type { FleetRefusal } from "../../protocol/fleet.js";
import { difference, type FleetNodes } from "../fleet-nodes.js";
import type { RedisNode } from "../node.js";
import { FORMAT, type NodeStatus } from "../record.js";

/** A node that was reached, with its status. */
interface MetNode {
  readonly name: string;
  readonly address: string;
  readonly status: NodeStatus;
}

/** What the check needs of a locker, and whom it tells what is new. */
export interface CheckSettings {
  readonly fleet: FleetNodes;
  /** What this locker asks for; undefined: whatever the fleet allows. */
  readonly maxTtlMs: number | undefined;
  readonly onEvent: (event: NodeEvent) => void;
  readonly onRefusal: (refusal: FleetRefusal | undefined) => void;
  /** Other nodes are members now. */
  readonly onMembers: () => void;
  /** The longest lease the fleet allows is another now. */
  readonly onMaxTtl: (maxTtlMs: number | undefined) => void;
}

export class FleetCheck {
  readonly #settings: CheckSettings;
  #refusal: FleetRefusal | undefined;
  #toldMaxTtlMs: number | undefined;
  /** The longest lease of the generation that this locker met first. */
  #longestMs: number | undefined;

  constructor(settings: CheckSettings) {
    this.#settings = settings;
  }

  /** Why this locker must not use the fleet. */
  get refusal(): FleetRefusal | undefined {
    return this.#refusal;
  }

  /** The longest lease the fleet allows, once known. */
  get maxTtlMs(): number | undefined {
    return this.#settings.fleet.roster?.maxTtlMs ?? fleetMaxTtlMs(metOf(this.#settings.fleet.configured));
  }

  repeat(): void {
    const { onEvent, onMaxTtl, onRefusal } = this.#settings;
    this.#takeNewest();
    const { maxTtlMs } = this;
    if (maxTtlMs !== this.#toldMaxTtlMs) onMaxTtl(maxTtlMs);
    this.#toldMaxTtlMs = maxTtlMs;
    const before = this.#refusal;
    const refusal = this.#findRefusal();
    this.#exclude(refusal);
    if (refusal?.message === before?.message) return;
    this.#refusal = refusal;
    onRefusal(refusal);
    // The same mismatch, seen at another node, is not published again.
    if (refusal !== undefined && refusal.code !== before?.code) onEvent({ kind: "fleet_refused", reason: refusal.message });
  }

  #takeNewest(): void {
    const { fleet, onEvent, onMembers } = this.#settings;
    if (!fleet.consider()) return;
    onMembers();
    const message = difference(fleet);
    const members = fleet.members.map(({ address }) => address);
    if (message !== undefined) onEvent({ kind: "members_differ", generation: fleet.roster?.generation ?? 0, members, message });
  }

  #findRefusal(): FleetRefusal | undefined {
    const { fleet, maxTtlMs } = this.#settings;
    const { roster, members, beyondReach } = fleet;
    if (beyondReach !== undefined) return outOfReach(beyondReach);
    if (roster === undefined) return fleetRefusal(metOf(fleet.configured), maxTtlMs);
    // Later generations may allow less: then single calls are refused, not the process.
    this.#longestMs ??= roster.maxTtlMs;
    return rosterRefusal(metOf(members), Math.max(this.#longestMs, roster.maxTtlMs), maxTtlMs);
  }

  /**
   * All nodes of a fleet that must not be used; otherwise only a server that is not the member in
   * whose place it answers.
   */
  #exclude(refusal: FleetRefusal | undefined): void {
    const { fleet } = this.#settings;
    const before: MetNode[] = [];
    for (const node of fleet.members) {
      const [met] = metOf([node]);
      const otherServer = met === undefined || fleet.fleet === undefined ? undefined : notTheMember(met, { fleet: fleet.fleet, before });
      const cause = refusal?.message ?? otherServer;
      node.exclude(cause === undefined ? undefined : `FLEET_MISMATCH: ${cause}`);
      if (met !== undefined && otherServer === undefined) before.push(met);
    }
  }
}

function metOf(nodes: readonly RedisNode[]): readonly MetNode[] {
  return nodes.flatMap(({ name, address, status }) => (status === undefined ? [] : [{ name, address, status }]));
}

/** Why not, or undefined if it may: where no roster is known. */
function fleetRefusal(met: readonly MetNode[], askedMs: number | undefined): FleetRefusal | undefined {
  return otherFormat(met) ?? twins(met) ?? otherFleet(met) ?? tooLong(fleetMaxTtlMs(met), askedMs);
}

/** The same where the roster says who is a member, and how long a lease may last. */
function rosterRefusal(met: readonly MetNode[], longestMs: number, askedMs: number | undefined): FleetRefusal | undefined {
  return otherFormat(met) ?? tooLong(longestMs, askedMs);
}

/** Members that this locker cannot reach by itself: no way leads there from those it was given. */
function outOfReach(addresses: readonly string[]): FleetRefusal {
  return {
    kind: "mismatch",
    code: "fleet_mismatch",
    message: `the members of this fleet have changed, and this process knows no way to ${addresses.join(" and ")}; add what leads there to its list of nodes`,
  };
}

/** Why the server that answers in a member's place has no vote; undefined if it may have. */
function notTheMember(
  node: MetNode,
  { fleet, before }: { readonly fleet: string; readonly before: readonly MetNode[] },
): string | undefined {
  const { status } = node;
  if (status.fleet !== undefined && status.fleet !== fleet)
    return `${called(node)} belongs to fleet ${status.fleet}, the other members to fleet ${fleet}; correct its address, or clear it`;
  return twins([...before, node])?.message;
}

/** The longest lease the fleet allows, once known. */
function fleetMaxTtlMs(met: readonly MetNode[]): number | undefined {
  const stored = met.flatMap(({ status }) => status.roster?.maxTtlMs ?? []);
  return stored.length === 0 ? undefined : Math.min(...stored);
}

function called({ name, address }: MetNode): string {
  return `${name} (${address})`;
}

function otherFormat(met: readonly MetNode[]): FleetRefusal | undefined {
  const newer = met.find(({ status }) => status.unknownFormat !== undefined);
  if (newer === undefined) return undefined;
  return {
    kind: "mismatch",
    code: "unknown_format",
    message: `${called(newer)} has a record of format ${newer.status.unknownFormat}, and this version of the lock knows ${FORMAT}; upgrade this process`,
  };
}

function twins(met: readonly MetNode[]): FleetRefusal | undefined {
  for (const [index, node] of met.entries()) {
    const twin = met.slice(0, index).find(({ status }) => status.runId === node.status.runId);
    if (twin === undefined) continue;
    return {
      kind: "mismatch",
      code: "same_server",
      message: `${called(twin)} and ${called(node)} are one server (run_id ${node.status.runId.slice(0, 8)}…), which would vote twice; configure each server once`,
    };
  }
  return undefined;
}

function otherFleet(met: readonly MetNode[]): FleetRefusal | undefined {
  const members = met.filter(({ status }) => status.fleet !== undefined);
  const [first] = members;
  const intruder = members.find(({ status }) => status.fleet !== first?.status.fleet);
  if (first === undefined || intruder === undefined) return undefined;
  return {
    kind: "mismatch",
    code: "fleet_mismatch",
    message: `${called(first)} belongs to fleet ${first.status.fleet}, ${called(intruder)} to fleet ${intruder.status.fleet}; configure every locker of a namespace with the same nodes, or use another namespace`,
  };
}

function tooLong(stored: number | undefined, maxTtlMs: number | undefined): FleetRefusal | undefined {
  if (stored === undefined || maxTtlMs === undefined || maxTtlMs <= stored) return undefined;
  return {
    kind: "ttl",
    code: "max_ttl",
    message: `maxTtlMs is ${maxTtlMs}, but this fleet was founded with ${stored} ms: a node that lost its memory waits only that long before it votes again; ask for at most ${stored} ms`,
  };
}
