// The nodes of one locker: those that were configured, those that the fleet's roster names besides,
// and which of them are its members now. A member is known by the id in its record; one that lost
// its memory by the way on which it was found before, or by its address in the roster.
import { addressOf, sourceAt } from "../options/node-source.js";
import type { Clock } from "../platform/clock.js";
import type { ServerSource } from "../protocol/node.js";
import type { RedisNode } from "./node.js";
import { generationOf, isOfThisRun, type Member, type NodeStatus, type Roster } from "./record.js";

interface FleetNodesSettings {
  readonly sources: readonly ServerSource[];
  readonly open: (source: ServerSource, name: string) => RedisNode;
  /** Kept current: the generation whose votes this locker counts. */
  readonly votingIn: { generation: string };
  readonly clock: Pick<Clock, "monotonicMs">;
}

export class FleetNodes {
  readonly configured: readonly RedisNode[];
  readonly #settings: FleetNodesSettings;
  #opened: RedisNode[] = [];
  #members: readonly RedisNode[];
  #named: number;
  #isClosed = false;
  #knownAt = Number.POSITIVE_INFINITY;
  #fleet: string | undefined;
  #roster: Roster | undefined;
  #beyondReach: readonly string[] | undefined;
  #memberOf: ReadonlyMap<RedisNode, Member> = new Map();

  constructor(settings: FleetNodesSettings) {
    this.#settings = settings;
    this.#named = settings.sources.length;
    this.configured = settings.sources.map((source, index) => settings.open(source, `n${index + 1}`));
    this.#members = this.configured;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.all.map((node) => node.close()));
  }

  /** In the order of the list, then of their opening; the whole list while there is no roster. */
  get members(): readonly RedisNode[] {
    return this.#members;
  }

  get all(): readonly RedisNode[] {
    return [...this.configured, ...this.#opened];
  }

  get fleet(): string | undefined {
    return this.#fleet;
  }

  /** undefined: not known yet. */
  get roster(): Roster | undefined {
    return this.#roster;
  }

  /**
   * For how long this locker knows the present roster: so long, at least, the members before it
   * have granted no lease. Clocks of nodes may be set.
   */
  get knownForMs(): number {
    return Math.max(0, this.#settings.clock.monotonicMs() - this.#knownAt);
  }

  get generation(): string {
    return this.#settings.votingIn.generation;
  }

  /**
   * Addresses of members of a newer generation that this locker can reach only if it is told how.
   */
  get beyondReach(): readonly string[] | undefined {
    return this.#beyondReach;
  }

  memberAt(node: RedisNode): Member | undefined {
    return this.#memberOf.get(node);
  }

  /** Another node, on the way of those that are configured unless the user gives one. */
  open(source: ServerSource): RedisNode {
    this.#named++;
    const node = this.#settings.open(source, `n${this.#named}`);
    this.#opened = [...this.#opened, node];
    return node;
  }

  /** The node at that address, or another one. */
  openUnlessOpen(source: ServerSource): RedisNode {
    const address = addressOf(source);
    return this.all.find((node) => node.address === address) ?? this.open(source);
  }

  /** Takes the newest members that the statuses tell of. True if that changed who is a member. */
  consider(): boolean {
    this.#preferConfigured();
    const common = this.#fleet === undefined || this.#isGone() ? this.#commonFleet() : undefined;
    if (common !== undefined && common !== this.#fleet) {
      this.#fleet = common;
      this.#roster = undefined;
      for (const node of this.all) node.memberId = undefined;
    }
    const told = this.all.flatMap(({ status }) => (status !== undefined && status.fleet === this.#fleet ? (status.roster ?? []) : []));
    const newest = told.reduce<Roster | undefined>(
      (best, each) => (best === undefined || each.generation > best.generation ? each : best),
      undefined,
    );
    return this.adopt(newest);
  }

  /** The members of a generation that was agreed upon; true if that changed who is a member. */
  adopt(newest: Roster | undefined): boolean {
    const roster = newest !== undefined && newest.generation > (this.#roster?.generation ?? -1) ? newest : this.#roster;
    if (roster === undefined) return false;
    const bound = this.#bind(roster);
    // Until all of them can be asked, the members before them stay, and so does their generation:
    // with the number of these members and votes of that generation, two sets could be counted.
    if (bound === undefined) return false;
    // In the order of the list, then of their coming.
    const nodes = this.all.filter((node) => bound.has(node));
    this.#memberOf = bound;
    const isSame = nodes.length === this.#members.length && nodes.every((node, index) => node === this.#members[index]);
    if (roster === this.#roster && isSame) return false;
    if (roster !== this.#roster) this.#knownAt = this.#settings.clock.monotonicMs();
    this.#roster = roster;
    this.#settings.votingIn.generation = generationOf(roster);
    this.#members = nodes;
    this.#closeFormer();
    return true;
  }

  /** Its members have lost all memory and were founded anew: too few are left for a quorum. */
  #isGone(): boolean {
    const others = this.#members.filter(({ status }) => status?.fleet !== undefined && status.fleet !== this.#fleet);
    return others.length > this.#members.length / 2;
  }

  /**
   * The fleet to which most of the configured nodes belong: one that leads to another fleet must
   * not decide where this locker votes.
   */
  #commonFleet(): string | undefined {
    for (const { status } of this.configured) {
      const { fleet, roster } = status ?? {};
      if (fleet === undefined || roster === undefined) continue;
      const isNamed = (address: string): boolean => roster.members.some((member) => member.address === address);
      const agreeing = this.configured.filter((other) =>
        other.status?.fleet === undefined ? isNamed(other.address) : other.status.fleet === fleet,
      );
      if (agreeing.length > this.configured.length / 2) return fleet;
    }
    return undefined;
  }

  #bind({ members }: Roster): ReadonlyMap<RedisNode, Member> | undefined {
    for (const node of this.all) {
      const member = members.find(({ id }) => id === node.status?.id && node.status.fleet === this.#fleet);
      if (member !== undefined) node.memberId = member.id;
    }
    const bound = new Map<RedisNode, Member>();
    const missing: { readonly member: Member; readonly way: ServerSource | undefined }[] = [];
    for (const member of members) {
      const node = this.#nodeOf(member, bound);
      if (node === undefined) missing.push({ member, way: this.#wayTo(member) });
      else bound.set(node, member);
    }
    const unreachable = missing.filter(({ way }) => way === undefined).map(({ member }) => member.address);
    this.#beyondReach = unreachable.length === 0 ? undefined : unreachable;
    if (unreachable.length > 0) return undefined;
    for (const { member, way } of missing) if (way !== undefined) bound.set(this.open(way), member);
    return bound;
  }

  #nodeOf({ id, address }: Member, taken: ReadonlyMap<RedisNode, Member>): RedisNode | undefined {
    const free = this.all.filter((node) => !taken.has(node));
    const isOther = ({ status }: RedisNode): boolean => this.#isOther(status, id);
    return (
      free.find(({ status }) => status?.id === id && status.fleet === this.#fleet) ??
      free.find((node) => node.memberId === id && !isOther(node)) ??
      free.find((node) => node.address === address && node.memberId === undefined && !isOther(node)) ??
      // Another server answers at the member's address: it keeps the place, and is silenced.
      free.find((node) => node.address === address)
    );
  }

  /** Its memory is that of another member of this fleet. */
  #isOther(status: NodeStatus | undefined, id: string): boolean {
    return status?.id !== undefined && status.id !== id && status.fleet === this.#fleet && isOfThisRun(status);
  }

  #wayTo({ address }: Member): ServerSource | undefined {
    for (const source of this.#settings.sources) {
      const way = sourceAt(address, source);
      if (way !== undefined) return way;
    }
    return undefined;
  }

  /**
   * The server at the roster's address is one that is configured under another: that way counts.
   * So a member that lost its memory is found, whose address here is not the roster's.
   */
  #preferConfigured(): void {
    for (const node of this.#opened) {
      const member = this.#memberOf.get(node);
      const own = this.configured.find(({ status }) => status !== undefined && status.runId === node.status?.runId);
      if (member === undefined || own === undefined) continue;
      own.memberId = member.id;
      this.#opened = this.#opened.filter((other) => other !== node);
      void node.close();
    }
  }

  /** Connections to former members that are not configured. */
  #closeFormer(): void {
    const former = this.#opened.filter((node) => !this.#members.includes(node) && node.memberId !== undefined);
    this.#opened = this.#opened.filter((node) => !former.includes(node));
    for (const node of former) void node.close();
  }
}

/** Where the locker's own list and the roster differ, in words; undefined where they do not. */
export function difference(nodes: FleetNodes): string | undefined {
  const { roster, members, configured } = nodes;
  if (roster === undefined) return undefined;
  const called = ({ name, address }: RedisNode): string => `${name} (${address})`;
  const added = members.filter((node) => !configured.includes(node)).map(called);
  const gone = configured.filter((node) => !members.includes(node)).map(called);
  const parts = added.map((name, index) => (gone[index] === undefined ? `${name} besides` : `${name} in place of ${gone[index]}`));
  for (const name of gone.slice(added.length)) parts.push(`no ${name}`);
  return parts.length === 0 ? undefined : `generation ${roster.generation} has ${parts.join(", ")}`;
}
