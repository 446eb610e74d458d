// Traps for what goes wrong only if several things happen at the right moments: lockers of the run's own process, with ways of their own to the nodes, that are led into the
// corners of the protocol, again and again, while everything else goes on. What they were given is noted down for the checkers; nothing is judged here.
import { setTimeout as sleep } from "node:timers/promises";
import { createLocker, type Lease, type Locker } from "@palisade/lock";
import type { FaultProxy, FleetWay, RedisFleet } from "@palisade/testkit";
import { overlaps, repeatedTokens, tokensAgainstTime } from "../checkers/leases.js";
import type { Chance } from "../harness/chance.js";
import { firstContact } from "../harness/first-contact.js";
import { nowMs, type Span, type Tenure, type Violation } from "../history/lease-record.js";
import type { FaultLog } from "./fault-log.js";
import type { NodeStrikes } from "./redis-nodes.js";

export const AMBUSH = "ambush";
/** The numbers of these clients are above it. */
export const AMBUSHERS = 900_000;

export interface AmbushSettings {
  readonly fleet: RedisFleet;
  readonly chance: Chance;
  readonly maxTtlMs: number;
  /** Between two traps, at most. */
  readonly restMs: number;
  readonly log: FaultLog;
  readonly strikes: NodeStrikes;
}

/** Enough for what is done between two packets. */
const NODE_TIMEOUT_MS = 500;
const HELD_MS = 450;
/** How long to wait for nodes that are well. */
const PATIENCE_MS = 5_000;
const LOOK_EVERY_MS = 20;

interface Party {
  readonly client: number;
  readonly locker: Locker;
  readonly way: FleetWay;
}

export class Ambush implements AsyncDisposable {
  readonly tenures: Tenure[] = [];
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
      const way = await settings.fleet.anotherWay();
      const { maxTtlMs } = settings;
      const label = `ambush ${client}`;
      const locker = createLocker({
        nodes: way.urls,
        ttlMs: maxTtlMs,
        maxTtlMs,
        nodeTimeoutMs: NODE_TIMEOUT_MS,
        connectTimeoutMs: 500,
        label,
      });
      await firstContact(locker);
      return { client, locker, way };
    };
    return new Ambush(settings, await Promise.all([party(AMBUSHERS + 1), party(AMBUSHERS + 2), party(AMBUSHERS + 3)]));
  }

  /** One trap after the other until the signal comes. */
  async lie(peace: AbortSignal): Promise<void> {
    const { chance, log, restMs, strikes } = this.#settings;
    for (let turn = 0; !peace.aborted; turn++) {
      const name = turn % 2 === 0 ? "grants forgotten" : "seal after the key ran out";
      const end = log.begin({ kind: `ambush: ${name}`, place: "ambush", target: name });
      const trap = (): Promise<boolean> => (name === "grants forgotten" ? this.#forgottenGrants() : this.#lateSeal());
      const isSprung = await strikes.quiet(PATIENCE_MS, async () => (await this.#inOrder()) && (await trap()));
      end();
      const title = isSprung ? name : `${name}: missed`;
      this.counts[title] = (this.counts[title] ?? 0) + 1;
      await Promise.all(this.#parties.map(({ way }) => way.heal()));
      await sleep(chance.between(restMs / 4, restMs), undefined, { signal: peace }).catch(nameAbort);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#parties.map(({ locker }) => locker.close()));
  }

  /** Everybody reaches every node, and all nodes have counted equally far: by a lease that everybody grants and whose token all of them store. */
  async #inOrder(): Promise<boolean> {
    for (const { locker } of this.#parties) {
      const sees = async (): Promise<boolean> => (await locker.inspect(AMBUSH)).ballots.every(({ kind }) => kind === "seen");
      for (const givenUpAt = performance.now() + PATIENCE_MS; !(await sees()); await sleep(LOOK_EVERY_MS))
        if (performance.now() > givenUpAt) return false;
    }
    const lease = await this.#try(this.#parties[0]);
    await lease?.release();
    return lease !== undefined;
  }

  /** L2: the holder was granted by three nodes; two of them forget that. They and the two it never reached would be a quorum for somebody else. */
  async #forgottenGrants(): Promise<boolean> {
    const { chance, strikes, maxTtlMs } = this.#settings;
    const [holder, rival] = this.#parties;
    const [a, b, ...granting] = chance.some([0, 1, 2, 3, 4], 5) as [number, number, number, number, number];
    await refuse(holder, [a, b]);
    const held = await this.#try(holder);
    if (held === undefined) return false;
    const isSprung = await strikes.surprise(chance.some(granting, 2), chance.between(0, 30));
    // It waits, as others do who want the lock.
    const taken = isSprung ? await rival.locker.acquire(AMBUSH, { waitMs: 2 * maxTtlMs }).catch(nameRefusal) : undefined;
    if (taken !== undefined) this.#note(rival, taken);
    await Promise.all([held.release(), taken?.release()]);
    return isSprung;
  }

  /**
   * T2: the nodes a and b have counted less far than d. The holder, granted by these three, has to store its token on a and b. Before that arrives, its keys there run out,
   * because clocks leap, and a rival is granted by them, whose token is the same if the late storing is let in.
   */
  async #lateSeal(): Promise<boolean> {
    const { chance, strikes, maxTtlMs } = this.#settings;
    const [holder, rival, raiser] = this.#parties;
    const [a, b, c, d, e] = chance.some([0, 1, 2, 3, 4], 5) as [number, number, number, number, number];
    await Promise.all([refuse(raiser, [a, b, c]), refuse(holder, [c, e]), refuse(rival, [d])]);
    // A quorum it cannot get: what it is granted, it gives back, and the counters stay.
    await raiser.locker.tryAcquire(AMBUSH).catch(nameRefusal);
    const links = [a, b, d].map((node) => holder.way.proxies[node] as FaultProxy);
    for (const link of links) link.holdReplies();
    const wanted = this.#try(holder);
    try {
      await Promise.all(links.map((link) => link.until(({ replies }) => replies.waitingBytes > 0, HELD_MS)));
      const late = links.slice(0, 2);
      for (const link of late) link.holdRequests();
      for (const link of links) link.deliver("replies");
      await Promise.all(late.map((link) => link.until(({ requests }) => requests.waitingBytes > 0, HELD_MS)));
      if (!(await strikes.leap([a, b], maxTtlMs + 50))) return false;
      const taken = await this.#try(rival);
      for (const link of late) link.deliver("requests");
      await Promise.all([(await wanted)?.release(), taken?.release()]);
      return taken !== undefined;
    } catch (error) {
      if (!/^not seen by the proxy/.test((error as Error).message)) throw error;
      return false; // There was no need to store it, or something else was in the way.
    } finally {
      await holder.way.heal();
      await (await wanted)?.release();
    }
  }

  async #try(party: Party): Promise<Lease | undefined> {
    const attempt = await party.locker.tryAcquire(AMBUSH).catch(nameRefusal);
    if (attempt?.ok !== true) return undefined;
    this.#note(party, attempt.lease);
    return attempt.lease;
  }

  #note({ client }: Party, lease: Lease): void {
    const { maxTtlMs } = this.#settings;
    const grantedAt = nowMs();
    const validUntilAt = nowMs() + lease.remainingMs();
    const beganAt = Math.min(grantedAt, validUntilAt - maxTtlMs + maxTtlMs * 0.01 + 2);
    const index = this.tenures.push({ client, token: lease.token, beganAt, grantedAt, validUntilAt }) - 1;
    const onEnd = (): void => {
      this.tenures[index] = { ...(this.tenures[index] as Tenure), toldAt: nowMs() };
    };
    // Its release is an end as well.
    if (lease.signal.aborted) onEnd();
    else lease.signal.addEventListener("abort", onEnd, { once: true });
  }
}

/** The promises of the lock but L1: the run's own process has too much else to do. */
export function judgeAmbush(tenures: readonly Tenure[], leaps: readonly Span[]): Violation[] {
  const found = [...repeatedTokens(tenures), ...tokensAgainstTime(tenures), ...overlaps(tenures, leaps)];
  return found.map((violation) => ({ ...violation, resource: AMBUSH, what: `${AMBUSH}: ${violation.what}` }));
}

async function refuse({ way }: Party, nodes: readonly number[]): Promise<void> {
  await Promise.all(nodes.map((node) => way.proxies[node]?.refuse()));
}

// The lock says no: it is not to be had at this moment.
function nameRefusal(error: Error): undefined {
  if (error.name !== "LockError") throw error;
}

// The run is over.
function nameAbort(error: Error): "aborted" {
  if (error.name === "AbortError") return "aborted";
  throw error;
}
