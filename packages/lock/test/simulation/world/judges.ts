// The judges of a world. They know the true time and what the servers executed, and run none of the
// lock's code. Each tells the lease checker what is broken.
import type { Ballot } from "#lock/protocol/ballot.js";
import type { Attempted, Lease } from "#lock/protocol/locker.js";
import { majority } from "#lock/quorum.js";
import type { ClientProcess, Timeline } from "../engine.js";
import type { Executed } from "../sim-server.js";
import { holdsLong, type Scenario } from "./scenario.js";

export interface Violation {
  readonly promise: "T1" | "T2" | "L1" | "L2" | "W1" | "fence" | "issued" | "ballots" | "left behind" | "forgotten" | "rejection";
  readonly atMs: number;
  readonly what: string;
}

/** A lease in the hands of one caller. All moments are in true time. */
export interface Holding {
  readonly client: ClientProcess;
  readonly lease: Lease;
  readonly resources: readonly string[];
  readonly token: number;
  /** Not later than the first byte of the request left. */
  readonly beganAt: number;
  readonly grantedAt: number;
  /** By the holder's own clock. */
  validUntilAt: number;
  endedAt: number | undefined;
  /** Whence the holder knows that it holds: the lease, or (in a control) a deadline of its own. */
  readonly asks: "the lease" | "itself";
}

interface History {
  /** Moments of grants, rising; `highest` has the highest token up to each. */
  readonly grantedAts: number[];
  readonly highest: number[];
  readonly tokens: Set<number>;
  present: Holding[];
  /** Leases asked for before this moment may have been removed by force. */
  forcedAt: number;
}

/** Sums of fractions are not exact. */
const EXACT_MS = 1e-6;
/** A running holder learns of the end within this time: timers fire late. */
const LEARNS_WITHIN_MS = 2.5;

/**
 * Judges leases: T1, T2 (tokens rise, none is given twice) and L2 (no two hold a lock) when one is given, L1 (a holder
 * learns of the end in time) when its holder does.
 */
export class LeaseChecker {
  readonly violations: Violation[] = [];
  /** L2 is not promised where clocks are wild. */
  readonly #judgesExclusion: boolean;
  readonly #now: () => number;
  readonly #histories = new Map<string, History>();
  granted = 0;

  constructor(now: () => number, judges: "with exclusion" | "without exclusion") {
    this.#now = now;
    this.#judgesExclusion = judges === "with exclusion";
  }

  break(promise: Violation["promise"], what: string): void {
    this.violations.push({ promise, atMs: this.#now(), what });
  }

  /** A new lease. */
  given(holding: Holding): void {
    this.granted++;
    for (const resource of holding.resources) {
      const history = this.#of(resource);
      if (history.tokens.has(holding.token))
        this.break("T2", `token ${holding.token} of ${resource} was given twice, now to ${described(holding)}`);
      history.tokens.add(holding.token);
      this.#ordered(resource, history, holding);
      this.#alone(resource, history, holding);
      record(history, holding.grantedAt, holding.token);
    }
  }

  /** Tokens of leases asked for from now on must be above the fence. */
  fenced(resource: string, fence: number): void {
    record(this.#of(resource), this.#now(), fence);
  }

  /** A node removed a holder by force. */
  forced(resource: string): void {
    this.#of(resource).forcedAt = this.#now();
  }

  /** The fleet was founded anew, which does not wait for earlier leases: L2 does not cover them. */
  refounded(): void {
    for (const history of this.#histories.values()) history.forcedAt = this.#now();
  }

  /** The holder's own lease says that it is over. */
  learnedOfEnd(holding: Holding): void {
    const now = this.#now();
    holding.endedAt ??= now;
    const dueAt = Math.max(holding.validUntilAt, holding.client.continuedAt);
    if (now > dueAt + LEARNS_WITHIN_MS)
      this.break("L1", `${described(holding)} was told ${(now - dueAt).toFixed(3)} ms after its end, while ${holding.client.name} ran`);
  }

  holdings(resource: string): readonly Holding[] {
    return this.#histories.get(resource)?.present ?? [];
  }

  #ordered(resource: string, { grantedAts, highest }: History, holding: Holding): void {
    // Binary search for the last token given before this lease was asked for.
    let from = 0;
    let to = grantedAts.length;
    while (from < to) {
      const middle = (from + to) >> 1;
      if ((grantedAts[middle] as number) < holding.beganAt - EXACT_MS) from = middle + 1;
      else to = middle;
    }
    const before = highest[from - 1];
    if (before !== undefined && holding.token <= before)
      this.break(
        "T1",
        `${described(holding)} of ${resource} began after ${before} had been given (at ${grantedAts[from - 1]?.toFixed(3)})`,
      );
  }

  #alone(resource: string, history: History, holding: Holding): void {
    const now = this.#now();
    history.present = history.present.filter((other) => other.endedAt === undefined && other.validUntilAt > now + EXACT_MS);
    if (this.#judgesExclusion && holding.validUntilAt > now + EXACT_MS) {
      for (const other of history.present) {
        if (history.forcedAt >= Math.min(other.beganAt, holding.beganAt) || !believes(other)) continue;
        const togetherMs = Math.min(other.validUntilAt, holding.validUntilAt) - now;
        this.break("L2", `${described(holding)} of ${resource} was given while ${described(other)} had ${togetherMs.toFixed(3)} ms left`);
      }
    }
    history.present.push(holding);
  }

  #of(resource: string): History {
    let history = this.#histories.get(resource);
    if (history === undefined) {
      history = {
        grantedAts: [],
        highest: [],
        tokens: new Set(),
        present: [],
        forcedAt: Number.NEGATIVE_INFINITY,
      };
      this.#histories.set(resource, history);
    }
    return history;
  }
}

/** A dead process holds nothing; a stopped one reads its clock again when it continues. */
function believes({ client, lease, asks }: Holding): boolean {
  return client.state !== "dead" && (asks === "itself" || lease.remainingMs() > 0);
}

function record({ grantedAts, highest }: History, at: number, token: number): void {
  grantedAts.push(at);
  highest.push(Math.max(highest.at(-1) ?? 0, token));
}

function described({ client, token, beganAt, grantedAt }: Holding): string {
  return `${client.name}'s lease ${token} (asked for at ${beganAt.toFixed(3)}, given at ${grantedAt.toFixed(3)})`;
}

/** Reservations for two that do not come, a look, and the acquisition. */
const SHORT_MS = 100;
/** Looks of the least number of nodes, twice, and acquisitions that collide. */
const LONGEST_MS = 6_000;
/** A lock has that much longer than its holder, as a share of the ttl. */
const DRIFT = 1 / 20;
/**
 * From so many waits on a mean says something. For several: after a part that was kept in vain others have it for
 * longer, and one wait is overtaken ten times.
 */
const ENOUGH = { one: 10, several: 30 };
/** Who has a turn while each other has one and a quarter has 0.8 of its share. Measured: 0.1 at most. */
const MOST_OVERTAKEN = 0.25;

interface Waiting {
  /** A caller, which may have waited before. */
  readonly who: object;
  readonly process: ClientProcess;
  readonly resources: readonly string[];
  readonly sinceAt: number;
  /** How often each other caller began later and came first, since processes stopped, went on or died. */
  overtaken: Map<object, number>;
}

interface Waits {
  count: number;
  readonly overtaken: Map<object, number>;
}

/**
 * Judges W1 where nothing fails but processes: who waits, for one or several, near or far, is overtaken by one and the
 * same other at most once on average; one that is near and waits for several, where nobody holds long, by each other in
 * a quarter of its waits at most; and a lock that one waits for does not stay free for long. A reservation, and a look
 * after it, are short. After those that stand still one longer look is needed, once for all that stopped at a time
 * (docs/decisions/0005). While a holder keeps a part of what a set wants for longer than the nodes keep the rest for the
 * set, others have that.
 */
export class TurnChecker {
  readonly #timeline: Timeline;
  readonly #scenario: Scenario;
  readonly #checker: LeaseChecker;
  readonly #waiting = new Set<Waiting>();
  readonly #last = new Map<string, Holding>();
  /** Of each caller, for one and for several. */
  readonly #waits = { one: new Map<object, Waits>(), several: new Map<object, Waits>() };
  /** Of the last lock that was found by a look, since processes stopped, went on or died. */
  #longGap: string | undefined;

  constructor(timeline: Timeline, scenario: Scenario, checker: LeaseChecker) {
    this.#timeline = timeline;
    this.#scenario = scenario;
    this.#checker = checker;
  }

  /** A process stopped, went on, died or began. */
  changed(): void {
    this.#longGap = undefined;
    for (const waiting of this.#waiting) waiting.overtaken = new Map();
  }

  /** Called when a caller begins to wait. Returns how to say that it does so no more. */
  waits(who: object, process: ClientProcess, resources: readonly string[]): () => void {
    const waiting = { who, process, resources, sinceAt: this.#timeline.now, overtaken: new Map<object, number>() };
    this.#waiting.add(waiting);
    return () => {
      this.#waiting.delete(waiting);
      const ofKind = this.#waits[resources.length === 1 ? "one" : "several"];
      const waits = ofKind.get(who) ?? { count: 0, overtaken: new Map<object, number>() };
      ofKind.set(who, waits);
      waits.count++;
      for (const [other, times] of waiting.overtaken) waits.overtaken.set(other, (waits.overtaken.get(other) ?? 0) + times);
    };
  }

  /** To one that began to wait at this moment. */
  given(holding: Holding, who: object, sinceAt: number): void {
    for (const waiting of this.#waiting) {
      const { state, continuedAt } = waiting.process;
      const isLater = waiting.sinceAt + this.#apartMs < sinceAt && state === "running" && continuedAt <= waiting.sinceAt;
      if (
        waiting.who !== who &&
        isLater &&
        holding.resources.some((one) => waiting.resources.includes(one)) &&
        !this.#isKeptWaiting(waiting)
      )
        waiting.overtaken.set(who, (waiting.overtaken.get(who) ?? 0) + 1);
    }
    for (const resource of holding.resources) {
      this.#judgeGap(resource, holding);
      this.#last.set(resource, holding);
    }
  }

  /** At the end of the world. */
  judgeShares(): void {
    for (const kind of ["one", "several"] as const) {
      for (const { count, overtaken } of this.#waits[kind].values()) {
        const most = Math.max(0, ...overtaken.values());
        if (count >= ENOUGH[kind] && most > count)
          this.#checker.break("W1", `a caller waited ${count} times, and one and the same other began later and came first ${most} times`);
      }
    }
    const { awayMs, clients, callers } = this.#scenario;
    if (awayMs > 0 || holdsLong(this.#scenario)) return;
    const sets = [...this.#waits.several.values()];
    const waits = total(sets.map(({ count }) => count));
    const byEach = total(sets.flatMap(({ overtaken }) => [...overtaken.values()])) / (clients * callers - 1);
    if (waits >= ENOUGH.several && byEach > MOST_OVERTAKEN * waits)
      this.#checker.break(
        "W1",
        `of ${waits} that waited for several each was overtaken ${(byEach / waits).toFixed(2)} times by each other`,
      );
  }

  /** Who asks from afar is heard later. */
  get #apartMs(): number {
    return 2 * (this.#scenario.leastMs + this.#scenario.jitterMs + this.#scenario.awayMs);
  }

  /** It wants several, and has waited long for the holder of one: others have the rest meanwhile. */
  #isKeptWaiting({ resources, sinceAt }: Waiting): boolean {
    const since = Math.max(sinceAt, this.#timeline.now - SHORT_MS);
    const isHeldLong = (last: Holding | undefined): boolean => last !== undefined && last.endedAt === undefined && last.grantedAt < since;
    return resources.length > 1 && resources.some((resource) => isHeldLong(this.#last.get(resource)));
  }

  #judgeGap(resource: string, { grantedAt, client }: Holding): void {
    const last = this.#last.get(resource);
    if (last === undefined) return;
    const freeAt = last.endedAt ?? last.validUntilAt + this.#scenario.ttlMs * DRIFT;
    const gapMs = grantedAt - freeAt;
    if (gapMs <= SHORT_MS + 2 * this.#apartMs || !this.#isAwaited(resource, freeAt)) return;
    const what = `${resource} was free for ${gapMs.toFixed(1)} ms until ${client.name} had it, while others waited`;
    if (gapMs > LONGEST_MS) this.#checker.break("W1", what);
    // Where several can be wanted, a part is kept for a quarter of the time.
    if (this.#scenario.resources === 1 && this.#longGap !== undefined) this.#checker.break("W1", `${what}; before that ${this.#longGap}`);
    this.#longGap = what;
  }

  /** By a process that ran all the while. */
  #isAwaited(resource: string, sinceAt: number): boolean {
    for (const { process, resources, sinceAt: beganAt } of this.#waiting) {
      const { state, continuedAt } = process;
      if (resources.length === 1 && resources[0] === resource && beganAt <= sinceAt && state === "running" && continuedAt <= sinceAt)
        return true;
    }
    return false;
  }
}

const total = (numbers: readonly number[]): number => numbers.reduce((sum, number) => sum + number, 0);

/**
 * What the servers really did, read from the scripts that they executed: which node granted which token to whom, which
 * holders were removed by force, and which memories were admitted. Clients cannot know this. Judges their ballots: a
 * node that is said to have granted did so, "held" means that a quorum answered, and no node of a healthy fleet is said
 * to be unreachable.
 */
export class ServerOracle {
  readonly #scenario: Scenario;
  readonly #checker: LeaseChecker;
  readonly #onAdmitted: (server: string) => void;
  readonly #granted = new Map<string, Map<number, string>>();

  constructor(scenario: Scenario, checker: LeaseChecker, onAdmitted: (server: string) => void) {
    this.#scenario = scenario;
    this.#checker = checker;
    this.#onAdmitted = onAdmitted;
  }

  executed(executed: Executed): void {
    const { name, reply, server } = executed;
    if (name === "grant" || name === "claim") this.#grants(executed);
    if (name === "raise") this.#removals(executed);
    if (name === "admit" && Array.isArray(reply) && reply[0] === "1") this.#onAdmitted(server.name);
  }

  judgeLease({ client, lease }: Holding): void {
    for (const ballot of lease.ballots) {
      if (ballot.kind !== "granted") continue;
      // An owner begins with the name of its process.
      const grantee = this.#granted.get(`${ballot.node}/${lease.resource}`)?.get(ballot.token);
      if (grantee?.startsWith(`${client.name}-`)) continue;
      this.#checker.break(
        "ballots",
        `${ballot.node} is said to have granted ${lease.resource} to ${client.name} with ${ballot.token}; it was ${grantee ?? "not granted"}`,
      );
    }
  }

  judgeAttempt(client: ClientProcess, resource: string, outcome: Attempted, fleet: "healthy" | "any"): void {
    const { nodes } = this.#scenario;
    const counted = (...kinds: readonly Ballot["kind"][]): number => outcome.ballots.filter(({ kind }) => kinds.includes(kind)).length;
    const wrong = (what: string): void => this.#checker.break("ballots", `${client.name} tried ${resource} and was told ${what}`);
    const quorum = majority(nodes);
    const answered = counted("granted", "held", "epoch_moved");
    if (!outcome.ok && outcome.reason === "held" && answered < quorum) wrong(`it is held, when ${answered} of ${nodes} had answered`);
    // A quorum of grants may still end in no_quorum, if the token could not be sealed.
    if (!outcome.ok && outcome.reason === "no_quorum" && counted("granted") < quorum && counted("granted", "held") === nodes)
      wrong("there was no quorum, when all had answered");
    if (fleet === "healthy" && counted("unreachable", "quarantined") > 0) wrong("of nodes that cannot be asked, when all is well");
  }

  #grants({ name, server, keys, args, reply }: Executed): void {
    const tokens = typeof reply === "number" ? [reply] : Array.isArray(reply) ? reply.slice(1) : [];
    const perRequest = (keys.length - 1) / tokens.length;
    for (const [i, token] of tokens.entries()) {
      if (typeof token !== "number") continue;
      const locks = keys.slice(1 + i * perRequest, 1 + (i + 1) * perRequest).filter((key) => key.includes(":lock:"));
      for (const lock of locks) this.#grant(`${server.name}/${resourceOf(lock)}`, token, args[name === "claim" ? 1 + 6 * i : 1 + i] ?? "");
    }
  }

  #grant(place: string, token: number, value: string): void {
    const there = this.#granted.get(place);
    if (there === undefined) this.#granted.set(place, new Map([[token, value]]));
    else there.set(token, value);
  }

  #removals({ keys, reply }: Executed): void {
    const replies = Array.isArray(reply) ? reply.slice(1) : [];
    for (const [i, raised] of replies.entries())
      if (Array.isArray(raised) && raised[1] !== "") this.#checker.forced(resourceOf(keys[1 + 2 * i] ?? ""));
  }
}

function resourceOf(lockKey: string): string {
  return lockKey.slice(lockKey.indexOf("lock:") + "lock:".length);
}
