// How the members of a fleet change while it is used. A majority of the present members agrees on
// the next generation in two rounds, as in Paxos: they promise, and they accept. One that has
// accepted is closed: it does not vote. Then those that stay enter the next generation above the
// highest floor that was told as they closed. A newcomer is rebuilt like a member that lost its
// memory, and who left is told. A change that was left half-way is carried on by any locker. Why two sets are never both
// counted: docs/decisions/0003, spec/members.tla. Below the rounds: what operators ask for.
import { closedError } from "../../lease/messages.js";
import type { Clock } from "../../platform/clock.js";
import { LockError } from "../../protocol/ballot.js";
import type { FleetMembers, MemberChange, ReconfigureOptions } from "../../protocol/fleet.js";
import type { ServerSource } from "../../protocol/node.js";
import type { ScriptCall } from "../calls.js";
import type { RedisFleet } from "../fleet.js";
import type { RedisNode } from "../node.js";
import {
  accept,
  changed,
  enter,
  forgottenLeasesEndMs,
  generationNumber,
  isClosed,
  isOfThisRun,
  longestLeaseMs,
  type Member,
  type NodeStatus,
  promise,
  type Roster,
  type RosterChange,
  retire,
  untoldOf,
} from "../record.js";
import { floorsNeeded } from "./plan.js";
import { answered, examineNode, foundFleet, openAdmissionOf, type ReadStatus, readStatuses } from "./steps.js";

export type Agreement =
  /** The members have this roster now: the one that was wished for, or one that was under way. */
  | { readonly kind: "agreed"; readonly roster: Roster }
  /** Nothing was under way, and nothing wished for. */
  | { readonly kind: "nothing" }
  /** Leases of the generation before the present one may still run. */
  | { readonly kind: "too early"; readonly missingMs: number }
  /** Others are at it, or members were rebuilt meanwhile: worth trying again soon. */
  | { readonly kind: "crossed" }
  | { readonly kind: "too few"; readonly asked: number };

/** Of ballots with one number, that of the higher lot counts. */
const LOTS = 2 ** 32;

/**
 * Has the members agree on the next generation: the one that another has begun, or else the wish.
 * The statuses were read before.
 */
export async function agree(
  fleet: RedisFleet,
  statuses: readonly ReadStatus[],
  wish: (present: Roster) => Roster | undefined,
): Promise<Agreement> {
  const { clock } = fleet;
  if (fleet.roster === undefined) return { kind: "nothing" };
  const rosters = statuses.flatMap(({ node, status }) => (fleet.members.includes(node) ? (status.roster ?? []) : []));
  const present = { ...fleet.roster, untold: untoldOf([fleet.roster, ...rosters]) };
  const majority = Math.floor(present.members.length / 2) + 1;
  const asked = statuses.filter(({ node, status }) => isPresent(fleet, node, status));
  if (asked.length < majority) return { kind: "too few", asked: asked.length };
  // Every lease of the generation before the present one must be over.
  const outwaitMs = present.generation > 1 ? Math.max(0, forgottenLeasesEndMs(longestLeaseMs(present)) - fleet.knownForMs) : 0;
  // Only members that can accept now: a part that has accepted, and is closed, would stop the fleet
  // until the others can.
  const missing = asked.map(({ status }) => (isClosed(status) ? 0 : Math.max(0, outwaitMs - status.openForMs)));
  const missingMs = missing.toSorted((one, other) => one - other)[majority - 1] ?? 0;
  if (missingMs > 0) return { kind: "too early", missingMs };
  const noted = asked.filter((_, i) => missing[i] === 0);
  const ballot = ballotAbove(Math.max(...noted.map(({ status }) => status.promised)), clock.random());
  const answers = await askEach(noted, ({ status }) => promise(status.admitted, ballot));
  const promised = answers.flatMap(({ read, answer }) => (answer.kind === "promised" ? [{ read, ...answer }] : []));
  if (promised.length < majority) return { kind: "crossed" };
  const next = begun(promised) ?? wish(present);
  if (next === undefined) return { kind: "nothing" };
  const accepted = await askEach(
    promised.map(({ read }) => read),
    ({ status }) => accept({ noted: status.admitted, ballot, roster: next, openForMs: outwaitMs, epoch: clock.secret() }),
  );
  const closed = accepted.flatMap(({ answer }) => (answer.kind === "accepted" ? [answer.floor] : []));
  if (closed.length < majority) {
    const early = accepted.flatMap(({ answer }) => (answer.kind === "too early" ? [answer.missingMs] : []));
    return early.length > 0 ? { kind: "too early", missingMs: Math.max(...early) } : { kind: "crossed" };
  }
  const floor = Math.max(...closed);
  // Before the locker changes over: the nodes are still the members of the generation that ends.
  const staying = fleet.members.filter((node) => next.members.some(({ id }) => id === node.memberId));
  const entering = Promise.all(staying.map((node) => enterOne(fleet, node, { next, floor })));
  const [known] = await Promise.all([tellThoseThatLeft(fleet, next), entering]);
  if (known !== next) await Promise.all(staying.map((node) => enterOne(fleet, node, { next: known, floor })));
  return { kind: "agreed", roster: known };
}

/**
 * Tells the servers that have left, as far as they can be reached; the members without those that know it now.
 * What one of them then answers leads a locker with an old list to the members; with nothing but its memory of
 * earlier days, and others like it, the fleet could be founded a second time.
 */
async function tellThoseThatLeft(fleet: RedisFleet, roster: Roster): Promise<Roster> {
  const { id, members } = fleet;
  if (id === undefined) return roster;
  const untold = await Promise.all(
    (roster.untold ?? []).map(async (left) => {
      const node = members.find(({ memberId }) => memberId === left.id) ?? fleet.all.find(({ address }) => address === left.address);
      const isTold = node !== undefined && (await answered(() => node.connection.run(retire(id, roster)), node));
      return isTold ? [] : [left];
    }),
  );
  return untold.every(({ length }) => length > 0) ? roster : { ...roster, untold: untold.flat() };
}

/** Every member of the present generation with a memory of this run, be it closed. */
function isPresent(fleet: RedisFleet, node: RedisNode, status: NodeStatus): boolean {
  const isMember = fleet.members.includes(node) && !node.isExcluded && isOfThisRun(status);
  return isMember && generationNumber(status.admission?.generation ?? "") === (fleet.roster?.generation ?? 0);
}

function ballotAbove(highest: number, chance: number): number {
  return (Math.floor(highest / LOTS) + 1) * LOTS + Math.floor(chance * LOTS);
}

/** What was accepted under the highest ballot: a majority may have accepted it. */
function begun(promises: readonly { readonly accepted: number; readonly roster: Roster | undefined }[]): Roster | undefined {
  const accepted = promises.filter(({ roster }) => roster !== undefined);
  return accepted.toSorted((one, other) => other.accepted - one.accepted)[0]?.roster;
}

async function askEach<T>(statuses: readonly ReadStatus[], call: (read: ReadStatus) => ScriptCall<T>) {
  const answers = await Promise.all(
    statuses.map(async (read) => {
      const answer = await answered(() => read.node.connection.run(call(read)), read.node);
      return answer === undefined ? [] : [{ read, answer }];
    }),
  );
  return answers.flat();
}

async function enterOne(
  { clock }: RedisFleet,
  node: RedisNode,
  { next, floor }: { readonly next: Roster; readonly floor: number },
): Promise<boolean> {
  const sinceGeneration = next.members.find(({ id }) => id === node.memberId)?.since ?? Number.MAX_SAFE_INTEGER;
  const given = { roster: next, floor, epoch: clock.secret(), sinceGeneration };
  return (await answered(() => node.connection.run(enter(given)), node)) ?? false;
}

/**
 * Leads members that kept their memory, and were away when the members changed, into the present
 * generation. Its floor is that of any node that votes in it.
 */
export async function leadIn(fleet: RedisFleet, statuses: readonly ReadStatus[]): Promise<boolean> {
  const { roster } = fleet;
  if (roster === undefined) return false;
  const numberOf = (status: NodeStatus): number => generationNumber(status.admission?.generation ?? "");
  const floors = statuses.flatMap(({ status }) =>
    status.fleet === fleet.id && isOfThisRun(status) && numberOf(status) === roster.generation ? (status.floor ?? []) : [],
  );
  if (floors.length === 0) return false;
  const floor = Math.max(...floors);
  const behind = statuses.filter(({ node, status }) => {
    const sinceGeneration = fleet.memberAt(node)?.since ?? Number.MAX_SAFE_INTEGER;
    return !node.isExcluded && isOfThisRun(status) && numberOf(status) < roster.generation && numberOf(status) >= sinceGeneration;
  });
  const entered = await Promise.all(behind.map(({ node }) => enterOne(fleet, node, { next: roster, floor })));
  return entered.includes(true);
}

const AGAIN_MS = 40;

/**
 * What an operator wishes to change. Repeated until it is done: a change that another began comes
 * first. Resolves with the members once they are as asked for; LockError `LOCK_NO_QUORUM` if that takes
 * too long.
 */
export async function reconfigure(
  fleet: RedisFleet,
  change: MemberChange<ServerSource>,
  limits: ReconfigureOptions,
): Promise<FleetMembers> {
  const { clock } = fleet;
  const wait = new ChangeWait(clock, limits);
  const newcomer = "add" in change ? fleet.openUnlessOpen(change.add) : "replace" in change ? fleet.openUnlessOpen(change.by) : undefined;
  for (;;) {
    const statuses = await readStatuses(fleet);
    if (fleet.isClosed) throw closedError([]);
    fleet.look();
    const step = await planOf(fleet, change, newcomer);
    if (step.kind === "done") {
      if ("remove" in change) await tellAgain(fleet, step.roster, change.remove);
      return membersOf(step.roster);
    }
    const outcome = step.kind === "wait" ? step : await agree(fleet, statuses, (present) => changed(present, step.change));
    if (outcome.kind === "agreed") {
      fleet.adopt(outcome.roster);
      continue;
    }
    const hindrance = waitAfter(outcome, fleet.roster, AGAIN_MS * (1 + clock.random()));
    if (!(await wait.for(hindrance)))
      throw new LockError("LOCK_NO_QUORUM", `the members were not changed within waitMs: ${described(hindrance)}`);
  }
}

/** One that could not be told when it left, and that an operator asks to remove again. */
async function tellAgain(fleet: RedisFleet, roster: Roster, address: string): Promise<void> {
  if (!roster.untold?.some((left) => left.address === address)) return;
  await fleet.openAt(address)?.met();
  const known = await tellThoseThatLeft(fleet, roster);
  if (known !== roster) await Promise.all(fleet.members.map((node) => enterOne(fleet, node, { next: known, floor: 0 })));
}

type Planned =
  | { readonly kind: "done"; readonly roster: Roster }
  | { readonly kind: "wait"; readonly why: string }
  | { readonly kind: "change"; readonly change: RosterChange };

async function planOf(fleet: RedisFleet, change: MemberChange<ServerSource>, newcomer: RedisNode | undefined): Promise<Planned> {
  const roster = fleet.roster;
  if (roster === undefined) return { kind: "wait", why: "not all members of this fleet are known" };
  const done = { kind: "done", roster } as const;
  if ("maxTtlMs" in change) return roster.maxTtlMs === change.maxTtlMs ? done : { kind: "change", change: { maxTtlMs: change.maxTtlMs } };
  const leaving = "add" in change ? undefined : memberNamed(fleet, "remove" in change ? change.remove : change.replace);
  const size = roster.members.length;
  // A majority of the members agrees, also where the one that leaves is gone half-way.
  if (leaving !== undefined && size <= 2)
    throw new RangeError(
      `a fleet of ${size} cannot lose a member: ${leaving.address} would have to agree to its own leaving, and no majority is left to finish that once it is gone; add a member first, or found another fleet under another namespace`,
    );
  if ("remove" in change) {
    if (leaving === undefined) return done;
    return votersLeft(fleet, { roster, leaving, joining: 0 }) ?? { kind: "change", change: { remove: leaving.id } };
  }
  if (newcomer === undefined) throw new Error("a change that adds a member has a newcomer");
  const id = await idOf(fleet, newcomer);
  if (id === undefined)
    return { kind: "wait", why: `${newcomer.name} (${newcomer.address}) cannot be asked: ${newcomer.connection.cause}` };
  if (roster.members.some((member) => member.id === id)) return done;
  // It became one, and has lost the id since.
  if (leaving === undefined && fleet.memberAt(newcomer) !== undefined) return done;
  const by = { id, address: newcomer.address };
  if ("add" in change) return votersLeft(fleet, { roster, leaving: undefined, joining: 1 }) ?? { kind: "change", change: { add: by } };
  if (leaving === undefined)
    throw new RangeError(
      `no member is called ${change.replace}; the members are ${roster.members.map(({ address }) => address).join(", ")}`,
    );
  return votersLeft(fleet, { roster, leaving, joining: 0 }) ?? { kind: "change", change: { replace: leaving.id, by } };
}

/**
 * Not begun while the members that stay are too few to rebuild the newcomer, or to go on without
 * it.
 */
function votersLeft(
  fleet: RedisFleet,
  { roster, leaving, joining }: { readonly roster: Roster; readonly leaving: Member | undefined; readonly joining: 0 | 1 },
): Planned | undefined {
  const isReplaced = leaving !== undefined && joining === 0;
  const size = roster.members.length + joining;
  const voters = fleet.members.filter((node) => node.isVoter && node.connection.isUp && node.memberId !== leaving?.id).length;
  const needed = Math.max(isReplaced ? 0 : floorsNeeded(size), Math.floor(size / 2) + 1 - joining);
  return voters >= needed ? undefined : { kind: "wait", why: `${voters} members that stay can vote, and ${needed} are needed` };
}

function memberNamed(fleet: RedisFleet, name: string): Member | undefined {
  const { roster } = fleet;
  return roster?.members.find(
    ({ id, address }) =>
      address === name || fleet.members.some((node) => node.memberId === id && (node.name === name || node.address === name)),
  );
}

/** The id under which the newcomer becomes a member: it is lost with its memory. */
async function idOf(fleet: RedisFleet, node: RedisNode): Promise<string | undefined> {
  await node.met();
  const [read] = await readStatuses(fleet, [node]);
  if (read === undefined) return undefined;
  const { id, runId, unknownFormat } = read.status;
  const other = read.status.fleet;
  const twin = fleet.members.find((member) => member !== node && member.status?.runId === runId);
  if (twin !== undefined && twin.memberId !== id)
    throw new RangeError(`${node.address} is the server of ${twin.name} (${twin.address}), which is a member`);
  if (unknownFormat !== undefined || (other !== undefined && other !== fleet.id))
    throw new RangeError(`${node.address} belongs to another fleet (${other ?? `format ${unknownFormat}`}): clear it first`);
  // One that was never admitted is given its id by an admission that is opened in this run.
  if (read.status.admission !== undefined) return id;
  return (await answered(() => openAdmissionOf(fleet, node), node))?.id;
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
export async function foundWithout(fleet: RedisFleet, without: readonly string[]): Promise<FleetMembers> {
  const absent = fleet.configured.filter(({ name, address }) => without.includes(name) || without.includes(address));
  if (absent.length !== without.length) throw new RangeError(`${without.join(", ")} must name nodes of this locker`);
  const up = absent.find(({ connection }) => connection.isUp);
  if (up !== undefined) throw new RangeError(`${up.name} (${up.address}) can be reached, so the fleet is founded with it`);
  const statuses = await readStatuses(fleet);
  fleet.look();
  if (fleet.roster !== undefined) return membersOf(fleet.roster);
  const seen = await Promise.all(statuses.map(({ node, status }) => examineNode(fleet, node, status)));
  const nodes = seen.flatMap((each) => (each === undefined || each === "changed since" || each.status.fleet !== undefined ? [] : [each]));
  if (nodes.length + absent.length < fleet.configured.length || nodes.length <= absent.length)
    throw new LockError(
      "LOCK_NO_QUORUM",
      `${nodes.length} of ${fleet.configured.length} nodes can be founded without ${without.join(", ")}; all others are needed, and a majority`,
    );
  const outcome = await foundFleet(
    fleet,
    nodes,
    absent.map(({ address }) => address),
  );
  if (outcome.kind === "blocked") throw new LockError("LOCK_NO_QUORUM", outcome.reason);
  await readStatuses(fleet);
  fleet.look();
  if (fleet.roster === undefined) throw new LockError("LOCK_NO_QUORUM", "nodes have changed while the fleet was founded; ask again");
  return membersOf(fleet.roster);
}

export function membersOf({ generation, members, maxTtlMs }: Roster): FleetMembers {
  return { generation, members: members.map(({ address }) => address), maxTtlMs };
}

/** What is waited for before it is looked at again. */
export interface Wait {
  readonly why: string;
  readonly waitMs: number;
  /** For leases, which end by themselves; otherwise for something that may never come about. */
  readonly outwaits: boolean;
}

/** By default a change gives up when nothing has come of it for so long, leases aside. */
const TRY_MS = 120_000;
/** How soon it notices that the locker was closed. */
const LOOK_EVERY_MS = 250;
/** The end of leases that is told is right to within so much. */
const TOLD_MS = 1_000;

/**
 * How long a change is tried. Leases that have to be outwaited take as long as they were allowed to
 * last: unless the caller has set a limit, they are waited for on top.
 */
export class ChangeWait {
  readonly #clock: Clock;
  readonly #limits: ReconfigureOptions;
  #until: number;
  #told: { readonly why: string; readonly endsAt: number } | undefined;

  constructor(clock: Clock, limits: ReconfigureOptions) {
    this.#clock = clock;
    this.#limits = limits;
    this.#until = clock.monotonicMs() + (limits.waitMs ?? TRY_MS);
  }

  /** False, at once, if there is no time for that; otherwise it may be worth looking again. */
  async for(wait: Wait): Promise<boolean> {
    const endsAt = this.#clock.monotonicMs() + wait.waitMs;
    if (wait.outwaits && this.#limits.waitMs === undefined) this.#until = Math.max(this.#until, endsAt + TRY_MS);
    if (endsAt > this.#until) return false;
    this.#tell(wait, endsAt);
    await new Promise<void>((resolve) => this.#clock.setTimer(Math.min(wait.waitMs, LOOK_EVERY_MS), resolve));
    return true;
  }

  #tell({ why, waitMs, outwaits }: Wait, endsAt: number): void {
    if (this.#told?.why === why && endsAt < this.#told.endsAt + TOLD_MS) return;
    this.#told = { why, endsAt: outwaits ? endsAt : Number.POSITIVE_INFINITY };
    this.#limits.onWait?.(outwaits ? { why, waitMs: Math.ceil(waitMs) } : { why });
  }
}

export function described({ why, waitMs, outwaits }: Wait): string {
  return outwaits ? `${why} for ${Math.ceil(waitMs)} ms more` : why;
}
