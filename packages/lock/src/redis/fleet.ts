// The fleet as one locker has it open: its nodes, which of them are members now and in which generation
// they vote, how long a lease may last, and why this locker must not use them. All of that follows from
// what the nodes last told of themselves (`look`), and from generations that were agreed upon (`adopt`).
// A member is known by the id in its record; one that lost its memory by the way on which it was found
// before, or by its address in the roster.
import { addressOf, sourceAt } from "../options/node-source.js";
import type { Clock } from "../platform/clock.js";
import type { NodeEvent } from "../protocol/events.js";
import type { FleetRefusal, FleetState } from "../protocol/fleet.js";
import type { ServerSource } from "../protocol/node.js";
import { type Keys, keysOf } from "../protocol/verbs.js";
import { BatchEncoder } from "./calls.js";
import type { OpenLink } from "./connection.js";
import { openLink } from "./link.js";
import { RedisNode } from "./node.js";
import { generationOf, isOfThisRun, type Member, type NodeStatus, type Roster } from "./record.js";
import { notTheMember, outOfReach, refusalOfList, refusalOfMembers, shortestMaxTtlMs } from "./refusal.js";

export interface FleetOptions {
  readonly nodes: readonly ServerSource[];
  /** Default: with ioredis. */
  readonly openLink?: OpenLink;
  readonly namespace: string;
  /** A node that has not answered by then is unreachable for this request. */
  readonly nodeTimeoutMs: number;
  readonly connectTimeoutMs: number;
  /**
   * Stored with a new fleet; a fleet that stored less refuses us. undefined: whatever the fleet
   * allows.
   */
  readonly maxTtlMs: number | undefined;
  /** How long a counter outlives its last use. At least maxTtlMs. */
  readonly retentionMs: number;
  readonly clock: Clock;
  /** Must not throw: reporting never changes what a node does next. */
  readonly onEvent: (event: NodeEvent) => void;
}

const DAY_MS = 86_400_000;

export class RedisFleet {
  readonly keys: Keys;
  readonly clock: Clock;
  /** What this locker asks for; undefined: whatever the fleet allows. */
  readonly askedMaxTtlMs: number | undefined;
  readonly onEvent: (event: NodeEvent) => void;
  /** In the order of the list: n1, n2, … */
  readonly configured: readonly RedisNode[];
  /** The generation whose votes this locker counts; empty while no member is known. */
  generation = "";
  /** Why nothing can be done now for the nodes that do not vote. Set by Admission. */
  blockedBecause: string | undefined;
  /** Called when the members or the longest lease are others. */
  onChange = (): void => {};
  /** Called when a node was reached, told another status, or became a member. */
  onNews = (): void => {};
  readonly #openNode: (source: ServerSource) => RedisNode;
  readonly #sources: readonly ServerSource[];
  #named = 0;
  #opened: RedisNode[] = [];
  #members: readonly RedisNode[];
  #memberOf: ReadonlyMap<RedisNode, Member> = new Map();
  #id: string | undefined;
  #roster: Roster | undefined;
  #knownAt = Number.POSITIVE_INFINITY;
  /**
   * Addresses of members of a newer generation that this locker can reach only if it is told how.
   */
  #beyondReach: readonly string[] = [];
  #maxTtlMs: number | undefined;
  /** The longest lease of the generation that this locker met first. */
  #firstMaxTtlMs: number | undefined;
  #refusal: FleetRefusal | undefined;
  #isClosed = false;

  constructor(options: FleetOptions) {
    const { clock, maxTtlMs, namespace, nodes } = options;
    this.clock = clock;
    this.askedMaxTtlMs = maxTtlMs;
    this.onEvent = options.onEvent;
    this.keys = keysOf(namespace, clock.secret());
    const shared = {
      openLink,
      ...options,
      keys: this.keys,
      encoder: new BatchEncoder(this.keys),
      maxTtlMs: maxTtlMs ?? DAY_MS,
      connectionName: `palisade:${namespace}`,
      votingIn: this,
      onNews: () => this.#heard(),
    };
    this.#openNode = (source) => new RedisNode({ ...shared, source, name: `n${++this.#named}`, address: addressOf(source) });
    this.#sources = nodes;
    this.configured = nodes.map(this.#openNode);
    this.#members = this.configured;
  }

  /** In the order of the list, then of their opening; the whole list while there is no roster. */
  get members(): readonly RedisNode[] {
    return this.#members;
  }

  get all(): readonly RedisNode[] {
    return [...this.configured, ...this.#opened];
  }

  /** As it is in the records of its members; undefined: not known yet. */
  get id(): string | undefined {
    return this.#id;
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
    return Math.max(0, this.clock.monotonicMs() - this.#knownAt);
  }

  memberAt(node: RedisNode): Member | undefined {
    return this.#memberOf.get(node);
  }

  /** The longest lease the fleet allows, once known. */
  get maxTtlMs(): number | undefined {
    return this.#maxTtlMs;
  }

  /** Why this locker must not use the fleet. */
  get refusal(): FleetRefusal | undefined {
    return this.#refusal;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.all.map((node) => node.close()));
  }

  get state(): FleetState {
    const up = this.#members.filter(({ connection }) => connection.isUp);
    const waits = "waiting until every lease it may have forgotten is over";
    return {
      admitted: up.filter(({ isVoter }) => isVoter).map(({ name }) => name),
      quarantined: up
        .filter(({ isVoter }) => !isVoter)
        .map(({ name, readyInMs, exclusion, blockedBecause = this.blockedBecause }) => ({
          node: name,
          ...(readyInMs === undefined ? {} : { readyInMs }),
          reason: exclusion ?? blockedBecause ?? (readyInMs ? waits : "being admitted"),
        })),
      unreachable: this.#members
        .filter(({ connection }) => !connection.isUp)
        .map(({ name, connection }) => ({ node: name, cause: connection.cause })),
      refusal: this.#refusal,
      maxTtlMs: this.#maxTtlMs,
    };
  }

  /** Where the locker's own list and the roster differ, in words; undefined where they do not. */
  get difference(): string | undefined {
    if (this.#roster === undefined) return undefined;
    const called = ({ name, address }: RedisNode): string => `${name} (${address})`;
    const added = this.#members.filter((node) => !this.configured.includes(node)).map(called);
    const gone = this.configured.filter((node) => !this.#members.includes(node)).map(called);
    const parts = added.map((name, index) => (gone[index] === undefined ? `${name} besides` : `${name} in place of ${gone[index]}`));
    for (const name of gone.slice(added.length)) parts.push(`no ${name}`);
    return parts.length === 0 ? undefined : `generation ${this.#roster.generation} has ${parts.join(", ")}`;
  }

  /** The node at that address, or another one. */
  openUnlessOpen(source: ServerSource): RedisNode {
    const address = addressOf(source);
    return this.all.find((node) => node.address === address) ?? this.#open(source);
  }

  /** The same for an address that the nodes have stored; undefined: no way is known. */
  openAt(address: string): RedisNode | undefined {
    const way = this.#wayTo({ address });
    return way === undefined ? undefined : this.openUnlessOpen(way);
  }

  #open(source: ServerSource): RedisNode {
    const node = this.#openNode(source);
    this.#opened = [...this.#opened, node];
    return node;
  }

  /** Refusals are known before the node that caused them can be asked anything. */
  #heard(): void {
    if (this.#isClosed) return;
    this.look();
    this.onNews();
  }

  /** Takes the newest members that the statuses tell of, and what the statuses say of all of them. */
  look(): void {
    this.#preferConfigured();
    const common = this.#id === undefined || this.#isGone() ? this.#commonFleet() : undefined;
    if (common !== undefined && common !== this.#id) {
      this.#id = common;
      this.#roster = undefined;
      for (const node of this.all) node.memberId = undefined;
    }
    const told = this.all.flatMap(({ status }) => (status !== undefined && status.fleet === this.#id ? (status.roster ?? []) : []));
    const newest = told.reduce<Roster | undefined>(
      (best, each) => (best === undefined || each.generation > best.generation ? each : best),
      undefined,
    );
    const hasOthers = this.#take(newest);
    const { difference } = this;
    if (hasOthers && difference !== undefined) {
      const members = this.#members.map(({ address }) => address);
      this.onEvent({ kind: "members_differ", generation: this.#roster?.generation ?? 0, members, message: difference });
    }
    this.#judge(hasOthers);
  }

  /** The members of a generation that was agreed upon. */
  adopt(roster: Roster): void {
    this.#judge(this.#take(roster));
  }

  /** True if that changed who is a member. */
  #take(newest: Roster | undefined): boolean {
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
    if (roster !== this.#roster) this.#knownAt = this.clock.monotonicMs();
    this.#roster = roster;
    this.generation = generationOf(roster);
    this.#members = nodes;
    this.#closeFormer();
    return true;
  }

  /** What follows from the members and their statuses, and who has to know. */
  #judge(hasOtherMembers: boolean): void {
    const maxTtlMs = this.#roster?.maxTtlMs ?? shortestMaxTtlMs(this.configured);
    const hasOtherTtl = maxTtlMs !== this.#maxTtlMs;
    this.#maxTtlMs = maxTtlMs;
    const before = this.#refusal;
    const refusal = this.#findRefusal();
    this.#exclude(refusal);
    if (refusal?.message !== before?.message) this.#refusal = refusal;
    // The same mismatch, seen at another node, is not published again.
    if (refusal !== undefined && refusal.code !== before?.code) this.onEvent({ kind: "fleet_refused", reason: refusal.message });
    if (hasOtherMembers || hasOtherTtl) this.onChange();
    // A newcomer has to be admitted, and may have said long ago that it is not.
    if (hasOtherMembers) this.onNews();
  }

  #findRefusal(): FleetRefusal | undefined {
    if (this.#beyondReach.length > 0) return outOfReach(this.#beyondReach);
    if (this.#roster === undefined) return refusalOfList(this.configured, this.askedMaxTtlMs);
    // Later generations may allow less: then single calls are refused, not the process.
    this.#firstMaxTtlMs ??= this.#roster.maxTtlMs;
    return refusalOfMembers(this.#members, Math.max(this.#firstMaxTtlMs, this.#roster.maxTtlMs), this.askedMaxTtlMs);
  }

  /**
   * All nodes of a fleet that must not be used; otherwise only a server that is not the member in
   * whose stead it answers.
   */
  #exclude(refusal: FleetRefusal | undefined): void {
    const before: RedisNode[] = [];
    for (const node of this.#members) {
      const otherServer = this.#id === undefined ? undefined : notTheMember(node, this.#id, before);
      const cause = refusal?.message ?? otherServer;
      node.exclusion = cause === undefined ? undefined : `FLEET_MISMATCH: ${cause}`;
      if (otherServer === undefined) before.push(node);
    }
  }

  /** Its members have lost all memory and were founded anew: too few are left for a quorum. */
  #isGone(): boolean {
    const others = this.#members.filter(({ status }) => status?.fleet !== undefined && status.fleet !== this.#id);
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
      const member = members.find(({ id }) => id === node.status?.id && node.status.fleet === this.#id);
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
    this.#beyondReach = unreachable;
    if (unreachable.length > 0) return undefined;
    for (const { member, way } of missing) if (way !== undefined) bound.set(this.#open(way), member);
    return bound;
  }

  #nodeOf({ id, address }: Member, taken: ReadonlyMap<RedisNode, Member>): RedisNode | undefined {
    const free = this.all.filter((node) => !taken.has(node));
    const isOther = ({ status }: RedisNode): boolean => this.#isOther(status, id);
    return (
      free.find(({ status }) => status?.id === id && status.fleet === this.#id) ??
      free.find((node) => node.memberId === id && !isOther(node)) ??
      free.find((node) => node.address === address && node.memberId === undefined && !isOther(node)) ??
      // Another server answers at the member's address: it stands for the member, and is silenced.
      free.find((node) => node.address === address)
    );
  }

  /** Its memory is that of another member of this fleet. */
  #isOther(status: NodeStatus | undefined, id: string): boolean {
    return status?.id !== undefined && status.id !== id && status.fleet === this.#id && isOfThisRun(status);
  }

  #wayTo({ address }: Pick<Member, "address">): ServerSource | undefined {
    for (const source of this.#sources) {
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
