// The fleets of one locker, each with a locker of its own, and the newest list that any of them
// has.
import { QuorumLocker } from "../locker.js";
import type { FleetOptions, FleetsOptions } from "../options/fleets.js";
import type { Policy } from "../options/policy.js";
import type { Clock } from "../platform/clock.js";
import { LockError } from "../protocol/errors.js";
import type { Fleet } from "../protocol/fleet.js";
import { compareLists, type FleetList } from "../protocol/fleet-list.js";
import { homeIn } from "../protocol/routing.js";
import { carryOut, type FleetPart, standingsOf } from "./change-list.js";
import { nameFirst, Unheard, whyElsewhere } from "./elsewhere.js";
import { concerned, planTogether } from "./list-plan.js";

/** Which of the fleets this one is, for those who open its nodes. */
export interface Among {
  readonly name: string;
  readonly names: readonly string[];
  readonly key: string;
}

const LOOK_EVERY_MS = 500;

/** At the lists of all fleets. */
interface Look {
  /** How often nodes of each fleet had been met when it began. */
  readonly met: ReadonlyMap<Fleet, number>;
  /** Fleets that have not answered. */
  readonly awaited: Set<string>;
  readonly done: Promise<void>;
}

export type OpenFleet = (options: FleetOptions, among: Among) => Fleet;

export class FleetParts {
  /** By name, in the order of their names. */
  readonly all: ReadonlyMap<string, FleetPart>;
  readonly #parts: readonly FleetPart[];
  readonly #clock: Clock;
  readonly #isClosed: () => boolean;
  /** The list of each as it was when the newest was found. */
  #seen: readonly (FleetList | undefined)[] = [];
  #newest: FleetList | undefined;
  #contact: Promise<void> | undefined;
  readonly #policy: Policy;
  #lookAt = 0;
  /** Per fleet, how often its nodes had been met when the last look began that has ended. */
  #heard: ReadonlyMap<Fleet, number> = new Map();
  /** The last one that has begun, while it lasts. */
  #look: Look | undefined;

  constructor(
    { fleets, key }: FleetsOptions,
    opening: { readonly open: OpenFleet; readonly clock: Clock; readonly isClosed: () => boolean },
  ) {
    const { open, clock, isClosed } = opening;
    const names = fleets.map(({ name }) => name);
    const [first] = fleets;
    if (first === undefined) throw new RangeError("a locker has at least one fleet");
    this.#policy = first.policy;
    this.#clock = clock;
    this.#isClosed = isClosed;
    this.#parts = fleets.map((options) => {
      const { name, policy } = options;
      const fleet = open(options, { name, names, key });
      const own = { name, fleet, names };
      fleet.elsewhere = (resources) => {
        this.#watch(fleet);
        return this.whyUnheard(own, resources) ?? whyElsewhere(own, this.list, resources);
      };
      fleet.untilHeard = (why) => (why instanceof Unheard ? (this.untilHeard(fleet) ?? Promise.resolve()) : undefined);
      return { name, fleet, locker: new QuorumLocker(fleet, policy, clock) };
    });
    this.all = new Map(this.#parts.map((part) => [part.name, part]));
  }

  /** Of the first; they differ only in how many nodes there are. */
  get policy(): Policy {
    return this.#policy;
  }

  /** The newest list, with the fleets that are used; undefined before one is known. */
  get list(): FleetList | undefined {
    const parts = this.#parts;
    let isSame = this.#seen.length > 0;
    for (let i = 0; isSame && i < parts.length; i++) isSame = parts[i]?.fleet.listing.list === this.#seen[i];
    if (isSame) return this.#newest;
    this.#seen = parts.map(({ fleet }) => fleet.listing.list);
    this.#newest = this.#seen.reduce((best, each) => (compareLists(each, best) > 0 ? each : best), undefined);
    return this.#newest;
  }

  /** Where the resource is asked for now; undefined before first contact. */
  homeOf(resource: string): FleetPart | undefined {
    const { list } = this;
    if (list === undefined || list.version === 0) return this.#parts.length === 1 ? this.#first : undefined;
    const home = homeIn(list.fleets, resource);
    return home === undefined ? undefined : (this.all.get(home.name) ?? this.#refusing(home.name));
  }

  /** Those of the list; all that are configured before one is known. */
  get used(): readonly FleetPart[] {
    const { list } = this;
    if (list === undefined || list.version === 0) return this.#parts;
    return list.fleets.flatMap(({ name }) => this.all.get(name) ?? []);
  }

  /**
   * Those of the list, and while one of them has not got it also those that they leave: nobody else
   * knows the tokens and leases of what moves before the change is whole.
   */
  get concerned(): readonly FleetPart[] {
    const { list, used } = this;
    if (list === undefined || used.every(({ fleet }) => compareLists(fleet.listing.list, list) === 0)) return used;
    const lists = new Map(this.#parts.map(({ name, fleet }) => [name, fleet.listing]));
    return concerned(lists, list).flatMap((name) => this.all.get(name) ?? []);
  }

  /** Resolves when a list is known, be it that only one of the fleets could be reached. */
  async contact(): Promise<void> {
    while (this.homeOf("") === undefined) {
      this.#contact ??= this.#meet().finally(() => {
        this.#contact = undefined;
      });
      await this.#contact;
    }
  }

  /**
   * The nodes of a fleet tell of a new list as they answer. Those of one that is down do not, and
   * it may have been taken out of the list.
   */
  #watch(fleet: Fleet): void {
    const now = this.#clock.monotonicMs();
    if (now < this.#lookAt) return;
    this.#lookAt = now + LOOK_EVERY_MS;
    if (fleet.state().admitted.length * 2 <= fleet.nodes.length) void this.lookAgain();
  }

  /** The lists of all fleets have been looked at once. */
  get hasLooked(): boolean {
    return this.#parts.length === 1 || this.#heard.size > 0;
  }

  firstLook(): Promise<void> {
    return this.#look?.done ?? this.lookAgain();
  }

  /**
   * Resolves when the lists of all fleets were looked at after most nodes of this one were met;
   * undefined where they were. It may have been removed as lost before, and have come back with the
   * list in which it was (L2).
   */
  untilHeard(fleet: Fleet): Promise<void> | undefined {
    if (!this.#isUnheard(fleet, this.#heard)) return undefined;
    if (this.#look === undefined || this.#isUnheard(fleet, this.#look.met)) return this.lookAgain();
    return this.#look.done;
  }

  whyUnheard({ name, fleet }: { readonly name: string; readonly fleet: Fleet }, resources: readonly string[]): LockError | undefined {
    if (this.untilHeard(fleet) === undefined) return undefined;
    const awaited = [...(this.#look?.awaited ?? [])].filter((other) => other !== name);
    return new Unheard(name, awaited, resources);
  }

  #isUnheard(fleet: Fleet, met: ReadonlyMap<Fleet, number>): boolean {
    return this.#parts.length > 1 && fleet.listing.isBackSince(met.get(fleet) ?? 0);
  }

  /** Where a fleet cannot be reached, without it. */
  lookAgain(): Promise<void> {
    const met = new Map(this.#parts.map(({ fleet }) => [fleet, fleet.listing.timesMet]));
    const awaited = new Set(this.all.keys());
    const asked = this.#parts.map(async ({ name, fleet }) => {
      await fleet.listing.lookAgain();
      awaited.delete(name);
    });
    const done = Promise.all(asked).then(() => this.#looked(met));
    const look = { met, awaited, done };
    this.#look = look;
    return done.finally(() => {
      if (this.#look === look) this.#look = undefined;
    });
  }

  #looked(met: ReadonlyMap<Fleet, number>): void {
    this.#heard = new Map([...met].map(([fleet, times]) => [fleet, Math.max(times, this.#heard.get(fleet) ?? 0)]));
  }

  async close(): Promise<void> {
    await Promise.all(this.#parts.map(({ locker }) => locker.close()));
  }

  get #first(): FleetPart {
    const [first] = this.#parts;
    if (first === undefined) throw new RangeError("a locker has at least one fleet");
    return first;
  }

  /** Named in the list, and not configured here: any fleet of the list says so. */
  #refusing(name: string): FleetPart {
    const refused = this.#parts.find(({ fleet }) => fleet.refusal !== undefined);
    if (refused !== undefined) return refused;
    throw new LockError("FLEET_MISMATCH", `the list of fleets has ${name}, and this process was not given it; add it to its fleets`);
  }

  async #meet(): Promise<void> {
    await new Promise<void>((resolve) => {
      let open = this.#parts.length;
      for (const { fleet } of this.#parts)
        void fleet.settled().then(() => {
          open--;
          if (open === 0 || this.homeOf("") !== undefined) resolve();
        });
    });
    if (this.homeOf("") === undefined && !this.#isClosed()) await this.#begin();
  }

  #remedy(used: string | undefined): string {
    if (used !== undefined) return nameFirst(used);
    const here = this.#parts.map(({ name, fleet }) => `${name}=${fleet.nodes.map(({ address }) => address).join(",")}`);
    return `here they are ${here.join(" ")}: give every process the same fleets, and where addresses have to differ let one process found them before the others start; to use them as they are, ${nameFirst(this.#first.name)}`;
  }

  /** All were reached or could not be, and none has a list that is in use. */
  async #begin(): Promise<void> {
    if (this.list === undefined) {
      const standings = await standingsOf(this.all);
      const waiting = this.#parts.filter(({ name }) => standings.get(name) === undefined).map(({ name }) => name);
      if (this.homeOf("") !== undefined) return;
      if (waiting.length === 0)
        throw new LockError(
          "FLEET_MISMATCH",
          `${[...this.all.keys()].join(", ")} are each used by themselves; ${nameFirst(this.#first.name)}`,
        );
      await Promise.all(this.#parts.filter(({ name }) => waiting.includes(name)).map(({ locker }) => locker.ready()));
      return;
    }
    try {
      const limits = { waitMs: this.policy.waitMs };
      await carryOut({ parts: this.all, clock: this.#clock, isClosed: this.#isClosed, limits, isLost: false, plan: planTogether });
    } catch (error) {
      const used = this.#parts.find(({ fleet }) => fleet.listing.id !== undefined && fleet.listing.list === undefined);
      throw error instanceof RangeError ? new LockError("FLEET_MISMATCH", `${error.message}; ${this.#remedy(used?.name)}`) : error;
    }
  }
}
