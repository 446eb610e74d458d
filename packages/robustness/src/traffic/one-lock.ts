// Traffic of the lock profile: acquires and releases the one resource so many times. Some leases
// reach their end: by staying, by renewing, by being stopped.
import { Journal } from "../history/history.js";
import { waited } from "../history/records.js";
import { type Chance, chanceOf } from "./chance.js";
import { type FromWorker, type LockOrders, noTally, type Process, type Traffic } from "./messages.js";
import { firstContact, type HeldLease, palisadeLock, RecordedLock } from "./recorded-lock.js";
import { unsealedLock } from "./unsealed-lock.js";

export const RESOURCE = "the one";
export const lockTimes = { ttlMs: 400, maxTtlMs: 800, nodeTimeoutMs: 60 };
const LONG_TTL_MS = 150;
const WAIT_MS = 3_000;

export interface Hold {
  readonly how: "briefly" | "until told" | "stopped past its end" | "renewing";
  readonly ttlMs: number;
  readonly holdMs: number;
}

function planHold(chance: Chance, { leases, longHolds }: Pick<LockOrders, "leases" | "longHolds">): Hold {
  if (!chance.happens(longHolds / leases))
    return { how: "briefly", ttlMs: lockTimes.ttlMs, holdMs: chance.happens(0.5) ? 0 : chance.between(1, 2) };
  const how = chance.one(["until told", "until told", "stopped past its end", "renewing"] as const);
  if (how === "until told") return { how, ttlMs: LONG_TTL_MS, holdMs: lockTimes.maxTtlMs * 4 };
  if (how === "renewing") return { how, ttlMs: LONG_TTL_MS, holdMs: LONG_TTL_MS * (1 + chance.next() * 2) };
  return { how, ttlMs: LONG_TTL_MS, holdMs: LONG_TTL_MS + chance.between(20, 300) };
}

/** Holds the lease as planned, or until its signal tells of the end, and releases it. */
export async function hold(lease: HeldLease, { how, holdMs }: Hold, { pause }: Process): Promise<void> {
  if (how === "stopped past its end") await pause(holdMs);
  else if (holdMs > 0 && !lease.signal.aborted) await waited(holdMs, lease.signal);
  await lease.release();
}

export class OneLock implements Traffic {
  readonly #orders: LockOrders;
  readonly #process: Process;
  readonly #journal: Journal;
  readonly #lock: RecordedLock;
  readonly #chance: Chance;
  #isFinishing = false;
  #taken = 0;
  #tally = { ...noTally };

  constructor(orders: LockOrders, process: Process) {
    const { name, client, seed, redisUrls } = orders;
    this.#orders = orders;
    this.#process = process;
    this.#journal = new Journal(orders.journal);
    const settings = { ...lockTimes, label: name };
    const lock = orders.lock === "palisade" ? palisadeLock(redisUrls, settings) : unsealedLock(redisUrls, settings);
    this.#lock = new RecordedLock(lock, this.#journal);
    this.#chance = chanceOf(seed, name);
    this.#journal.recordPauses(client);
  }

  ready(): Promise<void> {
    return firstContact(this.#lock);
  }

  async work(): Promise<void> {
    while (this.#taken < this.#orders.leases && !this.#isFinishing) {
      const plan = planHold(this.#chance, this.#orders);
      try {
        const lease = await this.#lock.acquire(RESOURCE, { ttlMs: plan.ttlMs, renew: plan.how === "renewing", waitMs: WAIT_MS });
        await hold(lease, plan, this.#process);
        this.#taken++;
        this.#tally.done++;
      } catch (error) {
        if ((error as { code?: string }).code === undefined) throw error;
        this.#tally.refused++;
      }
    }
  }

  finish(): void {
    this.#isFinishing = true;
  }

  report(): FromWorker {
    const tally = this.#tally;
    this.#tally = { ...noTally };
    return { kind: "tally", tally };
  }

  async close(): Promise<void> {
    await this.#lock.close();
    this.#journal.close();
  }
}
