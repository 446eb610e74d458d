// How the members of a fleet change while it is used. A majority of the present members agrees on
// the next generation in two rounds, as in Paxos: they promise, and they accept. One that has
// accepted is closed: it does not vote. Then those that stay enter the next generation above the
// highest floor that was told as they closed. A newcomer is rebuilt like a member that lost its
// memory. A change that was left half-way is carried on by any locker. Why two sets are never both
// counted: docs/adr/0061, spec/members.tla.

import { generationNumber } from "../admission-record.js";
import { type Accepted, accept, enter, type Promised, promise } from "../generation-record.js";
import type { RedisNode } from "../node.js";
import { isClosed, isOfThisRun, type NodeStatus, type ScriptCall } from "../node-record.js";
import { forgottenLeasesEndMs, longestLeaseMs, type Roster } from "../roster.js";
import { type AdmissionSettings, answered, type ReadStatus } from "./steps.js";

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

interface Noted {
  readonly node: RedisNode;
  readonly status: NodeStatus;
}

/** What the members promised, by node. */
type Answers<T> = readonly { readonly noted: Noted; readonly answer: T }[];

/**
 * Has the members agree on the next generation: the one that another has begun, or else the wish.
 * The statuses were read before.
 */
export async function agree(
  settings: AdmissionSettings,
  statuses: readonly ReadStatus[],
  wish: (present: Roster) => Roster | undefined,
): Promise<Agreement> {
  const { fleet, clock } = settings;
  const present = fleet.nameMembers();
  if (present === undefined) return { kind: "nothing" };
  const majority = Math.floor(present.members.length / 2) + 1;
  const asked = statuses.filter(({ node, status }) => isPresent(settings, node, status));
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
  const promised = (await askEach<Promised>(noted, ({ status }) => promise(settings.keys, status.admitted, ballot))).filter(
    (each): each is { noted: Noted; answer: Extract<Promised, { kind: "promised" }> } => each.answer.kind === "promised",
  );
  if (promised.length < majority) return { kind: "crossed" };
  const next = begun(promised.map(({ answer }) => answer)) ?? wish(present);
  if (next === undefined) return { kind: "nothing" };
  const accepted = await askEach<Accepted>(
    promised.map((each) => each.noted),
    ({ status }) =>
      accept(settings.keys, {
        noted: status.admitted,
        ballot,
        roster: next,
        openForMs: outwaitMs,
        epoch: clock.secret(),
      }),
  );
  return settle(settings, { next, accepted, majority });
}

/** Every member of the present generation with a memory of this run, be it closed. */
function isPresent({ fleet }: AdmissionSettings, node: RedisNode, status: NodeStatus): boolean {
  const isMember = fleet.members.includes(node) && !node.isExcluded && isOfThisRun(status);
  return isMember && generationNumber(status.admission?.generation ?? "") === (fleet.roster?.generation ?? 0);
}

function ballotAbove(highest: number, chance: number): number {
  return (Math.floor(highest / LOTS) + 1) * LOTS + Math.floor(chance * LOTS);
}

/** What was accepted under the highest ballot: a majority may have accepted it. */
function begun(promises: readonly Extract<Promised, { kind: "promised" }>[]): Roster | undefined {
  const accepted = promises.filter((each) => each.roster !== undefined);
  return accepted.reduce<(typeof accepted)[number] | undefined>(
    (best, each) => (best === undefined || each.accepted > best.accepted ? each : best),
    undefined,
  )?.roster;
}

async function askEach<T>(nodes: readonly Noted[], call: (noted: Noted) => ScriptCall<T>): Promise<Answers<T>> {
  const answers = await Promise.all(
    nodes.map(async (noted) => {
      const answer = await answered(() => noted.node.connection.run(call(noted)), noted.node);
      return answer === undefined ? [] : [{ noted, answer }];
    }),
  );
  return answers.flat();
}

async function settle(
  settings: AdmissionSettings,
  { next, accepted, majority }: { readonly next: Roster; readonly accepted: Answers<Accepted>; readonly majority: number },
): Promise<Agreement> {
  const closed = accepted.flatMap(({ answer }) => (answer.kind === "accepted" ? [answer.floor] : []));
  if (closed.length < majority) {
    const early = accepted.flatMap(({ answer }) => (answer.kind === "too early" ? [answer.missingMs] : []));
    return early.length > 0 ? { kind: "too early", missingMs: Math.max(...early) } : { kind: "crossed" };
  }
  const floor = Math.max(...closed);
  // Before the locker changes over: the nodes are still the members of the generation that ends.
  const staying = settings.fleet.members.filter((node) => next.members.some(({ id }) => id === node.memberId));
  await Promise.all(staying.map((node) => enterOne(settings, node, { next, floor })));
  return { kind: "agreed", roster: next };
}

async function enterOne(
  { keys, clock }: AdmissionSettings,
  node: RedisNode,
  { next, floor }: { readonly next: Roster; readonly floor: number },
): Promise<boolean> {
  const since = next.members.find(({ id }) => id === node.memberId)?.since ?? Number.MAX_SAFE_INTEGER;
  const given = { roster: next, floor, epoch: clock.secret(), since };
  return (await answered(() => node.connection.run(enter(keys, given)), node)) ?? false;
}

/**
 * Leads members that kept their memory, and were away when the members changed, into the present
 * generation. Its floor is that of any node that votes in it.
 */
export async function leadIn(settings: AdmissionSettings, statuses: readonly ReadStatus[]): Promise<boolean> {
  const { fleet } = settings;
  const { roster } = fleet;
  if (roster === undefined) return false;
  const numberOf = (status: NodeStatus): number => generationNumber(status.admission?.generation ?? "");
  const floors = statuses.flatMap(({ status }) =>
    status.fleet === fleet.fleet && isOfThisRun(status) && numberOf(status) === roster.generation ? (status.floor ?? []) : [],
  );
  if (floors.length === 0) return false;
  const floor = Math.max(...floors);
  const behind = statuses.filter(({ node, status }) => {
    const since = fleet.memberAt(node)?.since ?? Number.MAX_SAFE_INTEGER;
    return !node.isExcluded && isOfThisRun(status) && numberOf(status) < roster.generation && numberOf(status) >= since;
  });
  const entered = await Promise.all(behind.map(({ node }) => enterOne(settings, node, { next: roster, floor })));
  return entered.includes(true);
}
