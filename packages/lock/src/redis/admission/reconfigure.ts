// What an operator asks of a fleet: to change its members or its longest lease, and to be founded
// without a member that is down. Repeated until it is done: a change that another began comes
// first.
import { closedError } from "../../lease/messages.js";
import type { NodeSource } from "../../options/node-source.js";
import type { ChangeLimits } from "../../protocol/change-limits.js";
import { LockError } from "../../protocol/errors.js";
import type { FleetMembers, MemberChange } from "../../protocol/fleet.js";
import { compareLists, type ListStep, type LongestStep, namesIn } from "../../protocol/fleet-list.js";
import { ChangeWait, described, type Wait } from "../../waiting/change-wait.js";
import type { RedisNode } from "../node.js";
import { changed, type Member, type Roster, type RosterChange } from "../roster.js";
import { type Agreement, agree } from "./change.js";
import { found } from "./founding.js";
import { floorsNeeded } from "./plan.js";
import { type AdmissionSettings, answered, examineNode, openAdmissionOf, readStatuses } from "./steps.js";

interface Reconfiguration {
  readonly change: FleetChange;
  readonly limits: ChangeLimits;
}

/** Of its members, of the list of fleets, or of its longest lease. */
type FleetChange = MemberChange | ListStep | LongestStep;

const AGAIN_MS = 40;

/**
 * Resolves with the members once they are as asked for; LockError `LOCK_NO_QUORUM` if that takes
 * too long.
 */
export async function reconfigure(settings: AdmissionSettings, { change, limits }: Reconfiguration): Promise<FleetMembers> {
  const { clock, fleet, onMembers } = settings;
  const wait = new ChangeWait(clock, limits);
  const newcomer = "add" in change ? nodeFor(settings, change.add) : "replace" in change ? nodeFor(settings, change.by) : undefined;
  for (;;) {
    const statuses = await readStatuses(settings);
    if (fleet.isClosed) throw closedError([]);
    if (fleet.consider()) onMembers();
    const step = await planOf(settings, change, newcomer);
    if (step.kind === "done") return membersOf(step.roster);
    const outcome = step.kind === "wait" ? step : await agree(settings, statuses, (present) => changed(present, step.change));
    if (outcome.kind === "agreed") {
      if (fleet.adopt(outcome.roster)) onMembers();
      continue;
    }
    const hindrance = waitAfter(outcome, fleet.roster, AGAIN_MS * (1 + clock.random()));
    if (!(await wait.for(hindrance)))
      throw new LockError("LOCK_NO_QUORUM", `the members were not changed within waitMs: ${described(hindrance)}`);
  }
}

type Planned =
  | { readonly kind: "done"; readonly roster: Roster }
  | { readonly kind: "wait"; readonly why: string }
  | { readonly kind: "change"; readonly change: RosterChange };

async function planOf(settings: AdmissionSettings, change: FleetChange, newcomer: RedisNode | undefined): Promise<Planned> {
  const roster = settings.fleet.nameMembers();
  if (roster === undefined) return { kind: "wait", why: "not all members of this fleet are known" };
  const done = { kind: "done", roster } as const;
  // What is agreed on follows the very generation that was looked at here, or nothing is.
  if ("from" in change && compareLists(roster.fleets, change.from) !== 0) return done;
  if ("to" in change) return { kind: "change", change: { fleets: change.to } };
  if ("maxTtlMs" in change) {
    if (!("from" in change)) checkAlone(roster);
    return roster.maxTtlMs === change.maxTtlMs ? done : { kind: "change", change: { maxTtlMs: change.maxTtlMs } };
  }
  const leaving = "add" in change ? undefined : memberNamed(settings, "remove" in change ? change.remove : change.replace);
  if ("remove" in change) {
    if (leaving === undefined) return done;
    return votersLeft(settings, { roster, leaving, joining: 0 }) ?? { kind: "change", change: { remove: leaving.id } };
  }
  if (newcomer === undefined) throw new Error("a change that adds a member has a newcomer");
  const id = await idOf(settings, newcomer);
  if (id === undefined)
    return { kind: "wait", why: `${newcomer.name} (${newcomer.address}) cannot be asked: ${newcomer.connection.cause}` };
  if (roster.members.some((member) => member.id === id)) return done;
  const by = { id, address: newcomer.address };
  if ("add" in change) return votersLeft(settings, { roster, leaving: undefined, joining: 1 }) ?? { kind: "change", change: { add: by } };
  if (leaving === undefined)
    throw new RangeError(
      `no member is called ${change.replace}; the members are ${roster.members.map(({ address }) => address).join(", ")}`,
    );
  return votersLeft(settings, { roster, leaving, joining: 0 }) ?? { kind: "change", change: { replace: leaving.id, by } };
}

/** The other fleets have to be told first how long its leases may last (L2). */
function checkAlone({ fleets }: Roster): void {
  if (fleets === undefined || fleets.fleets.length === 1) return;
  throw new LockError(
    "FLEET_MISMATCH",
    `this fleet is one of ${namesIn(fleets).join(", ")}: its longest lease is changed by a locker that was given all of them, by name`,
  );
}

/**
 * Not begun while the members that stay are too few to rebuild the newcomer, or to go on without
 * it.
 */
function votersLeft(
  { fleet }: AdmissionSettings,
  { roster, leaving, joining }: { readonly roster: Roster; readonly leaving: Member | undefined; readonly joining: 0 | 1 },
): Planned | undefined {
  const isReplaced = leaving !== undefined && joining === 0;
  const size = roster.members.length + joining;
  const voters = fleet.members.filter((node) => node.isVoter && node.connection.isUp && node.memberId !== leaving?.id).length;
  const needed = Math.max(isReplaced ? 0 : floorsNeeded(size), Math.floor(size / 2) + 1 - joining);
  return voters >= needed ? undefined : { kind: "wait", why: `${voters} members that stay can vote, and ${needed} are needed` };
}

function memberNamed({ fleet }: AdmissionSettings, name: string): Member | undefined {
  const { roster } = fleet;
  return roster?.members.find(
    ({ id, address }) =>
      address === name || fleet.members.some((node) => node.memberId === id && (node.name === name || node.address === name)),
  );
}

function nodeFor({ fleet }: AdmissionSettings, source: NodeSource): RedisNode {
  return fleet.openUnlessOpen(source);
}

/** The id under which the newcomer becomes a member: it is lost with its memory. */
async function idOf(settings: AdmissionSettings, node: RedisNode): Promise<string | undefined> {
  await node.met();
  const [read] = await readStatuses(settings, [node]);
  if (read === undefined) return undefined;
  const { fleet, id, runId, unknownFormat } = read.status;
  const twin = settings.fleet.members.find((member) => member !== node && member.status?.runId === runId);
  if (twin !== undefined && twin.memberId !== id)
    throw new RangeError(`${node.address} is the server of ${twin.name} (${twin.address}), which is a member`);
  if (unknownFormat !== undefined || (fleet !== undefined && fleet !== settings.fleet.fleet))
    throw new RangeError(`${node.address} belongs to another fleet (${fleet ?? `format ${unknownFormat}`}): clear it first`);
  if (id !== undefined) return id;
  return (await answered(() => openAdmissionOf(settings, node), node))?.id;
}

function waitAfter(outcome: Agreement | Extract<Planned, { kind: "wait" }>, roster: Roster | undefined, againMs: number): Wait {
  if (outcome.kind === "too early")
    return { why: "leases of the generation before the present one may run", waitMs: outcome.missingMs, outwaits: true };
  const why =
    outcome.kind === "wait"
      ? outcome.why
      : outcome.kind === "too few"
        ? `${outcome.asked} members could be asked, and a majority of ${roster?.members.length ?? 0} is needed`
        : "another change was under way";
  return { why, waitMs: againMs, outwaits: false };
}

/**
 * Founds a fleet whose members `without` are down. Only for nodes that have never been a fleet:
 * what those that are down remember of one is not asked for.
 */
export async function foundWithout(settings: AdmissionSettings, without: readonly string[]): Promise<FleetMembers> {
  const { fleet, onMembers } = settings;
  const absent = fleet.configured.filter(({ name, address }) => without.includes(name) || without.includes(address));
  if (absent.length !== without.length) throw new RangeError(`${without.join(", ")} must name nodes of this locker`);
  const up = absent.find(({ connection }) => connection.isUp);
  if (up !== undefined) throw new RangeError(`${up.name} (${up.address}) can be reached, so the fleet is founded with it`);
  const statuses = await readStatuses(settings);
  if (fleet.consider()) onMembers();
  if (fleet.roster !== undefined) return membersOf(fleet.roster);
  const seen = await Promise.all(statuses.map(({ node, status }) => examineNode(settings, node, status)));
  const nodes = seen.flatMap((each) => (each === undefined || each === "changed since" || each.status.fleet !== undefined ? [] : [each]));
  if (nodes.length + absent.length < fleet.configured.length || nodes.length <= absent.length)
    throw new LockError(
      "LOCK_NO_QUORUM",
      `${nodes.length} of ${fleet.configured.length} nodes can be founded without ${without.join(", ")}; all others are needed, and a majority`,
    );
  const outcome = await found(
    settings,
    nodes,
    absent.map(({ address }) => address),
  );
  if (outcome.kind === "blocked") throw new LockError("LOCK_NO_QUORUM", outcome.reason);
  await readStatuses(settings);
  if (fleet.consider()) onMembers();
  if (fleet.roster === undefined) throw new LockError("LOCK_NO_QUORUM", "nodes have changed while the fleet was founded; ask again");
  return membersOf(fleet.roster);
}

export function membersOf({ generation, members, maxTtlMs }: Roster): FleetMembers {
  return { generation, members: members.map(({ address }) => address), maxTtlMs };
}
