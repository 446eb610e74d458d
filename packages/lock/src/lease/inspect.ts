// What the nodes store, and what a quorum of them says together: of one resource, of all that is held,
// of how each node stands, and of marks. Changes nothing but marks.
import { type InspectBallot, LockError } from "../protocol/ballot.js";
import type { Asked, HeldResource, HeldResources, Inspection, NodeInspection, StoredLeases } from "../protocol/fleet.js";
import type { Leader } from "../protocol/locker.js";
import { askAll, type Ballots, castBallots, noBallots, type QuorumRule } from "../quorum.js";
import { describeBallots, type Teller } from "./messages.js";
import type { LockerState } from "./state.js";

type Seen = Extract<InspectBallot, { kind: "seen" }>;

/** Asks every node and waits for all of them. */
export async function inspectAll(locker: LockerState, resource: string): Promise<readonly InspectBallot[]> {
  const { size } = locker.policy;
  return (await inspectUntil(locker, resource, (ballots) => (castBallots(ballots).length === size ? "all" : "open"))).ballots;
}

/** Asks every node until the judge gives a verdict. */
export async function inspectUntil<Verdict extends string>(
  locker: LockerState,
  resource: string,
  judge: (ballots: Ballots<InspectBallot>) => Verdict | "open",
): Promise<{ readonly verdict: Verdict; readonly ballots: readonly InspectBallot[] }> {
  const ballots = noBallots<InspectBallot>(locker.nodes.length);
  const asked = { resources: [resource] };
  const verdict = await askAll<InspectBallot, Verdict>(locker, {
    question: "inspect",
    resources: asked.resources,
    ballots,
    ask: (node) => node.ask("inspect", asked),
    judge,
  });
  return { verdict, ballots: castBallots(ballots) };
}

/** How each node stands. Of a name that nobody uses, it says nothing but whether it votes. */
export async function inspectNodes(locker: LockerState): Promise<readonly NodeInspection[]> {
  const { nodes, clock, fleet } = locker;
  const ballots = await inspectAll(locker, `palisade/nodes/${clock.secret()}`);
  // A node that is silent would keep the others waiting for as long as a connection may take.
  const reports = await fleet.report(new Set(ballots.flatMap(({ kind, node }) => (kind === "unreachable" ? [] : [node]))));
  return nodes.flatMap(({ name: node, address }): NodeInspection[] => {
    const ballot = ballots.find((cast) => cast.node === node);
    const report = reports.find((asked) => asked.node === node);
    if (ballot === undefined) return [];
    const base = { node, address, ...stateIn(ballot) };
    if (report === undefined) return [base];
    return [report.kind === "answered" ? { ...base, ...report.answer } : { ...base, hidden: report.cause }];
  });
}

function stateIn(ballot: InspectBallot): Pick<NodeInspection, "state" | "reason" | "readyInMs"> {
  if (ballot.kind === "seen") return { state: "votes" };
  if (ballot.kind === "unreachable") return { state: "silent", reason: ballot.cause };
  const { readyInMs, reason } = ballot;
  return { state: "waits", ...(readyInMs === undefined ? {} : { readyInMs }), ...(reason === undefined ? {} : { reason }) };
}

/** What the ballots say together. */
export function summarize(resource: string, ballots: readonly InspectBallot[], { size, quorum }: QuorumRule): Inspection {
  const seen = ballots.filter((ballot): ballot is Seen => ballot.kind === "seen");
  const highest = ranked(seen, 1, ({ token }) => token) ?? 0;
  const base = { resource, token: highest, waiting: ranked(seen, quorum, ({ waiting = 0 }) => waiting) ?? 0, ballots };
  if (seen.filter(({ holder }) => holder === null).length >= quorum) return { ...base, state: "free" };
  const held = holderIn(seen, quorum);
  if (held !== undefined) return { ...base, ...held };
  const unseen = size - seen.length;
  const canBeEither = [null, ...seen.map(({ owner }) => owner)].some(
    (candidate) => seen.filter(({ owner }) => owner === candidate).length + unseen >= quorum,
  );
  return { ...base, state: canBeEither ? "unknown" : "split" };
}

/** Whom a quorum of these has. */
function holderIn(stored: readonly Pick<Seen, "owner" | "holder" | "remainingMs" | "token">[], quorum: number) {
  for (const { owner, holder } of stored) {
    const theirs = stored.filter((other) => other.owner === owner);
    // A quorum has it until the first of the quorum's longest-lived keys runs out.
    const remainingMs = ranked(theirs, quorum, (each) => each.remainingMs ?? 0);
    const token = ranked(theirs, quorum, (each) => each.token);
    if (holder !== null && remainingMs !== undefined && token !== undefined) return { state: "held", holder, remainingMs, token } as const;
  }
  return undefined;
}

/**
 * The highest number that so many have or exceed. Of a holder's nodes a quorum stores its token, and
 * fewer a higher one, for which it was not chosen; so it is that token, or less where nodes are silent.
 */
function ranked<Each>(theirs: readonly Each[], quorum: number, numberOf: (each: Each) => number): number | undefined {
  return theirs.map(numberOf).sort((a, b) => b - a)[quorum - 1];
}

/** Who leads, if a quorum has it. Throws LOCK_NO_QUORUM if that cannot be told. */
export function leaderIn({ state, holder, token, remainingMs, resource, ballots }: Inspection, teller: Teller): Leader | null {
  if (state === "unknown") throw tooFewSaw(resource, ballots, teller);
  return state === "held" && holder !== undefined ? { label: holder, token, remainingMs: remainingMs ?? 0 } : null;
}

/** Thrown when too few nodes answered to prove anything. */
export function tooFewSaw(resource: string, ballots: readonly InspectBallot[], teller: Teller): LockError {
  const { size, quorum } = teller.policy;
  const seen = ballots.filter((ballot) => ballot.kind === "seen").length;
  const silent = describeBallots(
    ballots.filter((ballot) => ballot.kind !== "seen"),
    teller,
  );
  const message = `${seen} of ${size} nodes answered what they know of ${resource}, ${quorum} needed; ${silent}`;
  return new LockError("LOCK_NO_QUORUM", message, { resources: [resource], ballots });
}

/** So many are asked about at once; their questions share round trips. */
const AT_ONCE = 256;

/** The answers, of at least a quorum. */
export function answersOf<Answer>(locker: LockerState, what: string, asked: readonly Asked<Answer>[]): readonly Answer[] {
  const { size, quorum } = locker.policy;
  const answers = asked.flatMap((node) => (node.kind === "answered" ? [node.answer] : []));
  if (answers.length >= quorum) return answers;
  const ballots = asked.filter((node) => node.kind === "unreachable");
  const message = `${answers.length} of ${size} nodes answered ${what}, ${quorum} needed; ${describeBallots(ballots, locker)}`;
  throw new LockError("LOCK_NO_QUORUM", message, { resources: [], ballots });
}

/**
 * What is held now: the first leases in the order of their names. The nodes were listed one after
 * the other, so what they do not agree on is asked again, of all at once.
 */
export async function heldResources(locker: LockerState, asked: readonly Asked<StoredLeases>[], limit: number): Promise<HeldResources> {
  const lists = answersOf(locker, "what is held", asked);
  const cost = {
    silent: asked.flatMap(({ kind, node }) => (kind === "answered" ? [] : [node])),
    steps: Math.max(...lists.map(({ steps }) => steps)),
  };
  const known = new Set<string>();
  for (const { leases } of lists) for (const name of leases.keys()) known.add(name);
  const names = [...known].sort();
  const isWhole = lists.every((list) => list.isWhole);
  const held: HeldResource[] = [];
  for (let start = 0; start < names.length; start += AT_ONCE) {
    const some = names.slice(start, start + AT_ONCE);
    const found = await Promise.all(some.map((name) => agreed(name, lists, locker.policy.quorum) ?? askedAgain(locker, name)));
    for (const one of found) if (one !== undefined) held.push(one);
    if (held.length > limit) return { held: held.slice(0, limit), more: true, ...cost };
  }
  return { held, more: !isWhole, ...cost };
}

/** Undefined where no owner in the lists has a quorum. */
function agreed(resource: string, lists: readonly StoredLeases[], quorum: number): HeldResource | undefined {
  const stored = lists.flatMap(({ leases }) => leases.get(resource) ?? []);
  const held = holderIn(stored, quorum);
  return held && { resource, ...held, waiting: ranked(stored, quorum, ({ waiting }) => waiting) ?? 0 };
}

async function askedAgain(locker: LockerState, resource: string): Promise<HeldResource | undefined> {
  const { state, ballots: _, ...found } = summarize(resource, await inspectAll(locker, resource), locker.policy);
  return state === "free" ? undefined : { ...found, state };
}

/** The admission of one member changes every epoch once. */
const MAX_TRIES = 4;

const answersIn = <Answer>(asked: readonly Asked<Answer>[]): number => asked.filter(({ kind }) => kind === "answered").length;

/**
 * A mark is a number under a name of the caller's choice, which only rises: the highest that a
 * quorum knows. 0 only reads.
 */
export async function raiseMark(locker: LockerState, name: string, atLeast: number): Promise<number> {
  for (let tries = 1; ; tries++) {
    const asked = await locker.fleet.mark(name, atLeast);
    if (tries < MAX_TRIES && answersIn(asked) < locker.policy.quorum) continue;
    return Math.max(...answersOf(locker, `the mark ${name}`, asked));
  }
}
