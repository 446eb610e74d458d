// May this locker use these nodes? Compares what the nodes recorded at their admission with how the
// locker is configured, anew with every status that was read. Finds records of an unknown format,
// another fleet, one server twice and too long a lease; not an empty server in a member's stead
// (spec/assumptions.md).
import type { FleetRefusal } from "../protocol/fleet.js";
import { FORMAT, type NodeStatus } from "./record.js";

/** A node, with its status once it was reached. */
interface ToldNode {
  readonly name: string;
  readonly address: string;
  readonly status: NodeStatus | undefined;
}

type MetNode = ToldNode & { readonly status: NodeStatus };

const metOf = (nodes: readonly ToldNode[]): readonly MetNode[] => nodes.filter((node): node is MetNode => node.status !== undefined);

/** Why not, or undefined if it may: where no roster is known. */
export function refusalOfList(nodes: readonly ToldNode[], askedMs: number | undefined): FleetRefusal | undefined {
  const met = metOf(nodes);
  return otherFormat(met) ?? twins(met) ?? otherFleet(met) ?? tooLong(shortestMaxTtlMs(met), askedMs);
}

/** The same where the roster says who is a member, and how long a lease may last. */
export function refusalOfMembers(nodes: readonly ToldNode[], longestMs: number, askedMs: number | undefined): FleetRefusal | undefined {
  return otherFormat(metOf(nodes)) ?? tooLong(longestMs, askedMs);
}

/** Members that this locker cannot reach by itself: no way leads there from those it was given. */
export function outOfReach(addresses: readonly string[]): FleetRefusal {
  return {
    kind: "mismatch",
    code: "fleet_mismatch",
    message: `the members of this fleet have changed, and this process knows no way to ${addresses.join(" and ")}; add what leads there to its list of nodes`,
  };
}

/** Why the server that answers in a member's stead has no vote; undefined if it may have. */
export function notTheMember(node: ToldNode, fleet: string, before: readonly ToldNode[]): string | undefined {
  const { status } = node;
  if (status?.fleet !== undefined && status.fleet !== fleet)
    return `${called(node)} belongs to fleet ${status.fleet}, the other members to fleet ${fleet}; correct its address, or clear it`;
  return status === undefined ? undefined : twins(metOf([...before, node]))?.message;
}

/** The longest lease that all rosters allow, where no generation is known yet. */
export function shortestMaxTtlMs(nodes: readonly ToldNode[]): number | undefined {
  const stored = nodes.flatMap(({ status }) => status?.roster?.maxTtlMs ?? []);
  return stored.length === 0 ? undefined : Math.min(...stored);
}

function called({ name, address }: ToldNode): string {
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
