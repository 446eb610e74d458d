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
import { Elsewhere, nameFirst, whyElsewhere } from "./elsewhere.js";
import { concerned, planTogether } from "./list-plan.js";

/** Which of the fleets this one is, for those who open its nodes. */
export interface Among {
  readonly name: string;
  readonly names: readonly string[];
  readonly key: string;
}

const LOOK_EVERY_MS = 500;

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
  /** Per fleet, how often its nodes had been met when all were last asked for their lists. */
  readonly #heard = new Map<Fleet, number>();
  #looks = 0;

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
        return this.#whyUnheard(own, resources) ?? whyElsewhere(own, this.list, resources);
      };
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

  /**
   * Most of its nodes were met, or met again, since the others were asked for their lists: it may
   * have been removed as lost meanwhile, and have come back with the list of before (L2).
   */
  isUnheard(fleet: Fleet): boolean {
    if (this.#parts.length === 1) return false;
    return (fleet.listing.timesMet - (this.#heard.get(fleet) ?? 0)) * 2 > fleet.nodes.length;
  }

  #whyUnheard({ name, fleet }: { readonly name: string; readonly fleet: Fleet }, resources: readonly string[]): LockError | undefined {
    if (!this.isUnheard(fleet)) return undefined;
    if (this.#looks === 0) void this.lookAgain();
    return new Elsewhere(`fleet ${name} was met just now, and the other fleets have not yet been asked for a newer list`, resources);
  }

  /** Where a fleet cannot be reached, without it. */
  async lookAgain(): Promise<void> {
    const met = this.#parts.map(({ fleet }) => fleet.listing.timesMet);
    this.#looks++;
    await Promise.all(
      this.#parts.map(async ({ fleet }) => {
        await fleet.settled();
        await fleet.listing.lookAgain();
      }),
    );
    this.#looks--;
    for (const [index, { fleet }] of this.#parts.entries()) this.#heard.set(fleet, Math.max(met[index] ?? 0, this.#heard.get(fleet) ?? 0));
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
