// Carries out a change of the list of fleets, step by step, until it is done.
import { closedError } from "../lease/messages.js";
import type { QuorumLocker } from "../locker.js";
import type { Clock } from "../platform/clock.js";
import type { ChangeLimits } from "../protocol/change-limits.js";
import { LockError } from "../protocol/errors.js";
import type { Fleet } from "../protocol/fleet.js";
import type { FleetList, ListStep } from "../protocol/fleet-list.js";
import { MAX_TOKEN, TOKENS_PER_MS } from "../protocol/token.js";
import { ChangeWait, described } from "../waiting/change-wait.js";
import { newestOf, type Plan } from "./list-plan.js";
import { type Standings, tellLongest } from "./longest-lease.js";

export interface FleetPart {
  readonly name: string;
  readonly fleet: Fleet;
  readonly locker: QuorumLocker;
}

interface ListChange {
  readonly parts: ReadonlyMap<string, FleetPart>;
  readonly clock: Clock;
  readonly isClosed: () => boolean;
  readonly limits: ChangeLimits;
  /** The operator's word that a fleet is lost: tokens go on from the wall clock. */
  readonly isLost: boolean;
  plan(standings: Standings, forMs: number): Plan;
}

/** Resolves when nothing is left to do. LOCK_NO_QUORUM if that takes too long. */
export async function carryOut(change: ListChange): Promise<void> {
  const { clock, parts, limits, isClosed } = change;
  const wait = new ChangeWait(clock, limits);
  const startAt = clock.monotonicMs();
  for (;;) {
    const standings = await standingsOf(parts);
    if (isClosed()) throw closedError([]);
    const plan = change.plan(standings, clock.monotonicMs() - startAt);
    // Before a fleet takes the list in which it is, the others know how long its leases may last.
    if (plan.kind !== "refused" && plan.kind !== "wait") await tellLongest(parts, standings, listAfter(standings, plan));
    if (plan.kind === "done") return;
    if (plan.kind === "refused") throw new RangeError(plan.why);
    if (plan.kind === "wait") {
      if (!(await wait.for(plan)))
        throw new LockError("LOCK_NO_QUORUM", `the list of fleets was not changed within waitMs: ${described(plan)}`);
    } else {
      if (plan.kind === "open") await carryOver(change, plan);
      else await checkUnused(parts, plan.steps);
      await Promise.all([...plan.steps].map(([name, step]) => parts.get(name)?.fleet.listing.change(step, wait.limits)));
      wait.movedOn();
    }
  }
}

/** The list that the plan leads to, or the present one. */
function listAfter(standings: Standings, plan: Plan): FleetList | undefined {
  const steps = "steps" in plan ? [...plan.steps.values()] : [];
  return steps[0]?.to ?? newestOf(standings);
}

export async function standingsOf(parts: ReadonlyMap<string, FleetPart>): Promise<Standings> {
  return new Map(await Promise.all([...parts].map(async ([name, { fleet }]) => [name, await fleet.listing.standing()] as const)));
}

/**
 * What the others know is stored on a quorum before the fleets agree on the list in which something
 * moves to them: a majority of their nodes tells it as they close, so it holds in that generation
 * whoever finishes it (T1, G7).
 */
async function carryOver({ parts, clock, isLost }: ListChange, plan: Extract<Plan, { kind: "open" }>): Promise<void> {
  const byClock = isLost ? Math.min(MAX_TOKEN, Math.floor(clock.wallMs()) * TOKENS_PER_MS) : 0;
  const floor = Math.max(plan.floor, byClock);
  for (const name of plan.steps.keys()) {
    const part = parts.get(name);
    if (part === undefined) continue;
    if (floor > 0) await part.locker.raiseFloor(floor);
    for (const [mark, number] of plan.marks) await part.locker.carryMark(mark, number);
  }
}

/** Tokens of a fleet that others use by itself are not known to the fleets of the list. */
async function checkUnused(parts: ReadonlyMap<string, FleetPart>, steps: ReadonlyMap<string, ListStep>): Promise<void> {
  for (const [name, { from, to }] of steps) {
    if (from !== undefined || to.fleets.some((fleet) => fleet.name === name)) continue;
    const used = (await parts.get(name)?.locker.listResources()) ?? [];
    if (used.length === 0) continue;
    throw new RangeError(
      `${name} has been used by itself: it has tokens of ${used.length} resources, ${used[0]} for one; clear its nodes first`,
    );
  }
}
