// Traps for what goes wrong only if several things happen at the right moments: lockers in the
// harness's own process, with links of their own to the nodes, are led into the corners of the
// protocol, again and again, beside the planned faults.
import { setTimeout as sleep } from "node:timers/promises";
import { createLocker, type Locker } from "@palisade/lock";
import type { FaultProxy, FleetWay, RedisFleet } from "@palisade/testkit";
import { brokenLeases } from "../checkers/judge.js";
import { type JournalOf, type Line, leasesOf } from "../history/history.js";
import { type LeaseRecord, type Span, type Violation, waited } from "../history/records.js";
import type { Chance } from "../traffic/chance.js";
import { firstContact, type HeldLease, RecordedLock } from "../traffic/recorded-lock.js";
import type { FaultLog } from "./fault-log.js";
import type { NodeFaults } from "./redis-nodes.js";

const AMBUSH = "ambush";
/** The lockers of the ambush have higher numbers than this. */
export const AMBUSH_CLIENTS = 900_000;

interface AmbushSettings {
  readonly fleet: RedisFleet;
  readonly chance: Chance;
  readonly maxTtlMs: number;
  /** Between two traps, at most. */
  readonly restMs: number;
  readonly log: FaultLog;
  readonly nodes: NodeFaults;
}

/** Enough for what a trap does between two packets. */
const NODE_TIMEOUT_MS = 500;
const HELD_MS = 450;
/** How long to wait until no node has a fault. */
const QUIET_WITHIN_MS = 5_000;
const LOOK_EVERY_MS = 20;

interface Party {
  readonly client: number;
  readonly locker: Locker;
  readonly lock: RecordedLock;
  readonly lines: Line[];
  readonly links: FleetWay;
}

export class Ambush implements AsyncDisposable {
  /** How often each trap was sprung, and how often something else was in the way. */
  readonly counts: Record<string, number> = {};
  readonly #settings: AmbushSettings;
  readonly #parties: readonly [Party, Party, Party];

  private constructor(settings: AmbushSettings, parties: readonly [Party, Party, Party]) {
    this.#settings = settings;
    this.#parties = parties;
  }

  static async prepare(settings: AmbushSettings): Promise<Ambush> {
    const party = async (client: number): Promise<Party> => {
      const links = await settings.fleet.anotherWay();
      const { maxTtlMs } = settings;
      const times = { ttlMs: maxTtlMs, maxTtlMs, nodeTimeoutMs: NODE_TIMEOUT_MS, connectTimeoutMs: 500 };
      const locker = createLocker({ nodes: links.urls, ...times, label: `ambush ${client}` });
      await firstContact(locker);
      const lines: Line[] = [];
      return { client, locker, links, lines, lock: new RecordedLock(locker, { write: (line) => void lines.push(line) }) };
    };
    return new Ambush(settings, await Promise.all([party(AMBUSH_CLIENTS + 1), party(AMBUSH_CLIENTS + 2), party(AMBUSH_CLIENTS + 3)]));
  }

  get leases(): LeaseRecord[] {
    return this.#parties.flatMap(({ client, lines }) => leasesOf({ author: AMBUSH, client, lines } satisfies JournalOf));
  }

  /** One trap after the other until the signal comes. */
  async lie(over: AbortSignal): Promise<void> {
    const { chance, log, restMs, nodes } = this.#settings;
    for (let turn = 0; !over.aborted; turn++) {
      const name = turn % 2 === 0 ? "grants forgotten" : "seal after the key ran out";
      const end = log.begin({ kind: `ambush: ${name}`, place: "ambush", target: name });
      const trap = (): Promise<boolean> => (name === "grants forgotten" ? this.#forgottenGrants() : this.#lateSeal());
      const isSprung = await nodes.quiet(QUIET_WITHIN_MS, async () => (await this.#inOrder()) && (await trap()));
      end();
      const title = isSprung ? name : `${name}: missed`;
      this.counts[title] = (this.counts[title] ?? 0) + 1;
      await Promise.all(this.#parties.map(({ links }) => links.heal()));
      await waited(chance.between(restMs / 4, restMs), over);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#parties.map(({ locker }) => locker.close()));
  }

  /**
   * All lockers reach every node, and all nodes have counted equally far: by a lease that all nodes
   * grant and whose token all store.
   */
  async #inOrder(): Promise<boolean> {
    for (const { locker } of this.#parties) {
      const sees = async (): Promise<boolean> => (await locker.inspect(AMBUSH)).ballots.every(({ kind }) => kind === "seen");
      for (const givenUpAt = performance.now() + QUIET_WITHIN_MS; !(await sees()); await sleep(LOOK_EVERY_MS))
        if (performance.now() > givenUpAt) return false;
    }
    const lease = await this.#try(this.#parties[0]);
    await lease?.release();
    return lease !== undefined;
  }

  /**
   * L2: three nodes granted the lease; two of them forget it. They and the two that it never
   * reached would be a quorum for a rival.
   */
  async #forgottenGrants(): Promise<boolean> {
    const { chance, nodes, maxTtlMs } = this.#settings;
    const [holder, rival] = this.#parties;
    const [a, b, ...granting] = chance.some([0, 1, 2, 3, 4], 5) as [number, number, number, number, number];
    await refuse(holder, [a, b]);
    const held = await this.#try(holder);
    if (held === undefined) return false;
    const isSprung = await nodes.wipeInAmbush(chance.some(granting, 2), chance.between(0, 30));
    const taken = isSprung ? await this.#try(rival, 2 * maxTtlMs) : undefined;
    await Promise.all([held.release(), taken?.release()]);
    return isSprung;
  }

  /**
   * T2: the nodes a and b have counted less far than d. The holder, granted by these three, has to
   * store its token on a and b. Before that arrives, its keys there expire, because clocks jump,
   * and a rival is granted by them, whose token is the same if the late store is let in.
   */
  async #lateSeal(): Promise<boolean> {
    const { chance, nodes, maxTtlMs } = this.#settings;
    const [holder, rival, raiser] = this.#parties;
    const [a, b, c, d, e] = chance.some([0, 1, 2, 3, 4], 5) as [number, number, number, number, number];
    await Promise.all([refuse(raiser, [a, b, c]), refuse(holder, [c, e]), refuse(rival, [d])]);
    // It cannot get a quorum: it gives its grants back, and the counters stay.
    await raiser.locker.tryAcquire(AMBUSH).catch(nameRefusal);
    const links = [a, b, d].map((node) => holder.links.proxies[node] as FaultProxy);
    for (const link of links) link.holdReplies();
    const wanted = this.#try(holder);
    try {
      await Promise.all(links.map((link) => link.until(({ replies }) => replies.waitingBytes > 0, HELD_MS)));
      const late = links.slice(0, 2);
      for (const link of late) link.holdRequests();
      for (const link of links) link.deliver("replies");
      await Promise.all(late.map((link) => link.until(({ requests }) => requests.waitingBytes > 0, HELD_MS)));
      if (!(await nodes.shiftClocksInAmbush([a, b], maxTtlMs + 50))) return false;
      const taken = await this.#try(rival);
      for (const link of late) link.deliver("requests");
      await Promise.all([(await wanted)?.release(), taken?.release()]);
      return taken !== undefined;
    } catch (error) {
      if (!/^not seen by the proxy/.test((error as Error).message)) throw error;
      return false; // Storing the token was not needed, or another fault was in the way.
    } finally {
      await holder.links.heal();
      await (await wanted)?.release();
    }
  }

  /** Without `waitMs` once, as tryAcquire does. */
  #try({ lock }: Party, waitMs = 0): Promise<HeldLease | undefined> {
    return lock.acquire(AMBUSH, { ttlMs: this.#settings.maxTtlMs, waitMs }).catch(nameRefusal);
  }
}

/** The lock's promises but L1: the harness's process is too busy to be told in time. */
export function judgeAmbush(leases: readonly LeaseRecord[], clockJumps: readonly Span[]): Violation[] {
  return brokenLeases({ leases, pauses: [], clockJumps }).filter(({ promise }) => promise !== "L1");
}

async function refuse({ links }: Party, nodes: readonly number[]): Promise<void> {
  await Promise.all(nodes.map((node) => links.proxies[node]?.refuse()));
}

// The lock refuses: it is held, or there is no quorum now.
function nameRefusal(error: Error): undefined {
  if (error.name !== "LockError") throw error;
}
