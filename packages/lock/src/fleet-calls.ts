// What operators and stores ask of the nodes together: each call reads what it was given, waits for the
// first contact, and asks a quorum or the fleet itself.

import { answersOf, heldResources, inspectNodes, raiseMark } from "./lease/inspect.js";
import { forceRelease, highestToken, wasIssued } from "./lease/raise.js";
import type { LockerState } from "./lease/state.js";
import { foreignTokenOption, knownOptions, tokenOption, wellFormedText } from "./options/option.js";
import { readListHeldOptions, readMemberChange, readNames, readReconfigureOptions, readResource } from "./options/policy.js";
import type {
  Finding,
  Fleet,
  FleetMembers,
  ForcedRelease,
  ForceReleaseOptions,
  HeldResources,
  ListHeldOptions,
  MemberChange,
  NodeInspection,
  ReconfigureOptions,
} from "./protocol/fleet.js";
import type { FirstContact } from "./waiting/first-contact.js";

const MAX_NAME_BYTES = 1_024;

export class FleetCalls implements Fleet {
  readonly #locker: LockerState;
  readonly #firstContact: FirstContact;

  constructor(locker: LockerState, firstContact: FirstContact) {
    this.#locker = locker;
    this.#firstContact = firstContact;
  }

  async nodes(): Promise<readonly NodeInspection[]> {
    await this.#firstContact.pass();
    return inspectNodes(this.#locker);
  }

  async doctor(): Promise<readonly Finding[]> {
    await this.#firstContact.passUnchecked();
    return [...this.#tooLong(), ...(await this.#locker.fleet.probe())];
  }

  /** What this locker was given and its fleet does not allow any more: it may have been changed since. */
  #tooLong(): readonly Finding[] {
    const { fleet, policy } = this.#locker;
    const { maxTtlMs = policy.ttlMs } = fleet;
    if (!policy.hasOwnTtl || policy.ttlMs <= maxTtlMs) return [];
    const message = `ttlMs is ${policy.ttlMs} here, and leases of this fleet last ${maxTtlMs} ms at most: acquire refuses it`;
    const remedy = `Give createLocker a ttlMs of at most ${maxTtlMs}, or none, which follows the fleet.`;
    return [{ severity: "error", node: "fleet", code: "max_ttl", message, remedy }];
  }

  async listHeld(options?: ListHeldOptions): Promise<HeldResources> {
    const { prefix, limit } = readListHeldOptions(options);
    await this.#firstContact.pass();
    return heldResources(this.#locker, await this.#locker.fleet.listHeld(prefix), limit);
  }

  async forceRelease(resource: string, options: ForceReleaseOptions): Promise<ForcedRelease> {
    readResource(resource);
    const given = knownOptions<ForceReleaseOptions>("forceRelease", options, ["reason", "token"]);
    const reason = wellFormedText("reason", given.reason, MAX_NAME_BYTES);
    const token = given.token === undefined ? undefined : tokenOption(given.token);
    await this.#firstContact.pass([resource]);
    return forceRelease(this.#locker, resource, { reason, ...(token === undefined ? {} : { token }) });
  }

  async members(): Promise<FleetMembers> {
    await this.#firstContact.pass();
    const members = this.#locker.fleet.members();
    if (members !== undefined) return members;
    const { nodes, maxTtlMs } = this.#locker.fleet;
    return { generation: 0, members: nodes.map(({ address }) => address), maxTtlMs: maxTtlMs ?? this.#locker.policy.ttlMs };
  }

  async reconfigure(change: MemberChange, options?: ReconfigureOptions): Promise<FleetMembers> {
    const asked = readMemberChange(change);
    const limits = readReconfigureOptions(options);
    await this.#firstContact.pass();
    return this.#locker.fleet.reconfigure(asked, limits);
  }

  async foundWithout(absent: readonly string[]): Promise<FleetMembers> {
    const names = readNames(absent);
    await this.#firstContact.passUnchecked();
    return this.#locker.fleet.foundWithout(names);
  }

  async issued(resource: string, token: number): Promise<boolean> {
    readResource(resource);
    tokenOption(token);
    await this.#firstContact.pass([resource]);
    return wasIssued(this.#locker, resource, token);
  }

  async highestToken(resource?: string, atLeast = 0): Promise<number> {
    if (resource !== undefined) readResource(resource);
    const { clock } = this.#locker;
    foreignTokenOption(atLeast, clock.wallMs());
    await this.#firstContact.pass();
    // Of a name that nobody uses the nodes know the highest token of any.
    return highestToken(this.#locker, resource ?? `palisade/any/${clock.secret()}`, atLeast);
  }

  async listResources(): Promise<readonly string[]> {
    await this.#firstContact.pass();
    const names = answersOf(this.#locker, "the list of resources", await this.#locker.fleet.listResources());
    return [...new Set(names.flat())];
  }

  async mark(name: string, atLeast: number): Promise<number> {
    wellFormedText("name", name, MAX_NAME_BYTES);
    if (atLeast !== 0) tokenOption(atLeast);
    await this.#firstContact.pass();
    return raiseMark(this.#locker, name, atLeast);
  }
}
