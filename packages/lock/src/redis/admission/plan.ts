// What can be done now for nodes that are not admitted? Pure: what was seen of the fleet in, steps
// out. In order of preference: admit a node that kept everything; rebuild a node from enough
// others; only when those can never be enough, fall back to the wall clock.
import {
  forgottenLeasesEndMs,
  generationNumber,
  longestLeaseMs,
  type Member,
  type NodeStatus,
  type OpenAdmission,
  type Roster,
} from "../record.js";

/** A node that answered when the fleet was examined. */
export interface SeenNode {
  readonly name: string;
  readonly status: NodeStatus;
  /** Present if it is not admitted. */
  readonly opened?: OpenAdmission;
  /** Append-only log, fsync always, now. */
  readonly isDurable?: boolean;
  /** Which member it is; undefined where there is no roster. */
  readonly member?: Member;
}

export interface FleetView {
  readonly size: number;
  /** undefined: no fleet was founded, or not enough is known of it. */
  readonly roster: Roster | undefined;
  /** Those that did not answer, with their addresses. */
  readonly unseen: readonly string[];
  readonly seen: readonly SeenNode[];
  /** For how long this locker knows the roster. */
  readonly knownForMs?: number;
}

export type Step =
  /** It kept everything: read the floors of those that can be asked, admit it. */
  | { readonly kind: "durable"; readonly node: SeenNode }
  /** Read the floors of at least `needed` admitted others, then admit it with the highest. */
  | { readonly kind: "rebuilt"; readonly node: SeenNode; readonly needed: number; readonly waitMs: number }
  /**
   * So many lost their memory that too few others are left: read their floors all the same, and
   * take the wall clock as well.
   */
  | {
      readonly kind: "outlived";
      readonly node: SeenNode;
      readonly waitMs: number;
      readonly among: readonly SeenNode[];
    }
  /** No node is admitted, none remembers a fleet, and all answered: found one. */
  | { readonly kind: "found"; readonly nodes: readonly SeenNode[] }
  | { readonly kind: "blocked"; readonly nodes: readonly SeenNode[]; readonly reason: string };

/**
 * Of how many other admitted nodes the floors must be read, so that every quorum that may have
 * stored a token is met (T1, T2). Counted for the smallest quorum there can be: a locker with a
 * stricter one must not rebuild a node from fewer floors than lockers with the smallest need.
 */
export function floorsNeeded(size: number): number {
  return size - (Math.floor(size / 2) + 1) + 1;
}

/** The steps for all quarantined nodes that were seen; none if there are none. */
export function planAdmission(view: FleetView): readonly Step[] {
  const quarantined = view.seen.filter(({ opened }) => opened !== undefined);
  if (quarantined.length === 0) return [];
  const { roster } = view;
  if (roster === undefined) return [unfounded(quarantined, view)];
  const durable = quarantined.filter((node) => keptEverything(node, view));
  // They change what the others may do: the fleet is examined again after them.
  if (durable.length > 0) return durable.map((node) => ({ kind: "durable", node }));
  const admitted = view.seen.length - quarantined.length;
  const needed = floorsNeeded(view.size);
  const waitMs = (node: SeenNode): number => waitOf(node, roster, view);
  if (admitted >= needed) return quarantined.map((node) => ({ kind: "rebuilt", node, needed, waitMs: waitMs(node) }));
  // Even if all that we do not see are admitted, they are too few.
  if (view.size - quarantined.length < needed)
    return quarantined.map((node) => ({ kind: "outlived", node, waitMs: waitMs(node), among: quarantined }));
  const reason = `${admitted} of ${view.size} nodes are admitted, ${needed} are needed to rebuild another; ${view.unseen.join(" and ")} cannot be reached`;
  return [{ kind: "blocked", nodes: quarantined, reason }];
}

/** No roster is known: there is no fleet yet, or one of which this list of nodes says too little. */
function unfounded(nodes: readonly SeenNode[], { seen, size, unseen }: FleetView): Step {
  const remembering = seen.flatMap(({ name, status }) => (status.fleet === undefined ? [] : [name]));
  if (remembering.length === 0 && seen.length === size) return { kind: "found", nodes };
  const former = seen.flatMap(({ name, status: { id, roster } }) =>
    roster?.members.every((member) => member.id !== id) ? [{ name, roster }] : [],
  );
  const retired = former.map(
    ({ name, roster: { generation, members } }) =>
      `${name} left its fleet with generation ${generation}, whose members are ${members.map(({ address }) => address).join(", ")}`,
  );
  const reason =
    retired.length > 0
      ? `${retired.join("; ")}; give this process the members, or wipe what left before it is used in another fleet`
      : remembering.length > 0
        ? `${remembering.join(" and ")} ${remembering.length === 1 ? "belongs" : "belong"} to a fleet to which most nodes of this list do not belong by their memory or their addresses; correct the list`
        : `a new fleet is founded only when all ${size} nodes can be reached; ${unseen.join(" and ")} ${unseen.length === 1 ? "is" : "are"} not; locker.fleet.foundWithout founds it all the same`;
  return { kind: "blocked", nodes, reason };
}

function keptEverything({ status, isDurable, member }: SeenNode, view: FleetView): boolean {
  const { admission, id, fleet, floor, roster } = status;
  const isComplete = [admission, id, fleet, floor].every((field) => field !== undefined);
  // In the stead of the member whose memory this is, and since then without a break.
  const isInPlace =
    roster !== undefined && member !== undefined && id === member.id && generationNumber(admission?.generation ?? "") >= member.since;
  // A copy of another node's disk has the same id.
  const isAlone = view.seen.filter((other) => other.status.id === id).length === 1;
  return isDurable === true && status.wasDurable && isComplete && isInPlace && isAlone;
}

function waitOf(node: SeenNode, roster: Roster, view: FleetView): number {
  const endMs = forgottenLeasesEndMs(longestLeaseMs(roster));
  return Math.max(0, isNew(node) ? 0 : endMs - (node.opened?.lostForMs ?? 0), endMs - replacedForMs(node, view));
}

/**
 * The memory with which it was made a member, in which it never voted: it has forgotten nothing. One that went
 * back to what was on its disk then has another id (open-admission.lua).
 */
function isNew({ member, opened, status }: SeenNode): boolean {
  return member !== undefined && opened?.id === member.id && status.admitted === "";
}

/**
 * For how long the member that it replaces has had no vote, at least: those that vote with the
 * new one entered its generation after a majority had closed the one before.
 */
function replacedForMs({ member }: SeenNode, { seen, knownForMs = 0 }: FleetView): number {
  if (member?.inPlaceOf === undefined) return Number.POSITIVE_INFINITY;
  const openForMs = seen.flatMap(({ opened, status }) => (opened === undefined ? [status.openForMs] : []));
  // Where none is seen that votes, others may be asked by those that see them.
  return Math.max(openForMs.length === 0 ? 0 : Math.min(...openForMs), knownForMs);
}
