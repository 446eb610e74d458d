// Workers that all read, decide and write at the same moment, under a lock or under none.
import type { ActRun } from "../engine/act-run.js";
import type { Worker } from "../engine/worker-handle.js";
import type { PlainLockOptions } from "../worker/plain-lock.js";
import type { Document, Resource } from "../worker/protocol.js";

// No lease may run out here, however slow the machine: it is about which worker gets in.
const LEASE_MS = 30_000;

/** What keeps the workers apart. */
export type Guard = "nothing" | "one Redis" | "Redlock" | "Palisade";

interface Contest {
  readonly resource: Resource;
  readonly workers: readonly Worker[];
  readonly guard: Guard;
  /** From what is stored to what shall be; undefined when there is nothing to do. */
  readonly decide: (stored: Document | null, worker: Worker) => Document | undefined;
}

/**
 * How many found something to do, and of how many it was stored. Where a lock lets two in, the
 * first shows it, also where the fence keeps the second right.
 */
export interface Tally {
  readonly acted: number;
  readonly stored: number;
}

type Deed = "did nothing" | "refused" | "stored";

export async function contest(act: ActRun, { resource, workers, guard, decide }: Contest): Promise<Tally> {
  const acts = async (worker: Worker, stored: Document | null): Promise<Deed> => {
    const document = decide(stored, worker);
    if (document !== undefined) return (await worker.writes(resource, document)).ok ? "stored" : "refused";
    act.step("remarks", worker.name, { text: "finds nothing left to do" });
    return "did nothing";
  };
  if (guard === "nothing") {
    // All have read before the first writes: what a lock is there to prevent.
    const seen = await Promise.all(workers.map((worker) => worker.looksAt(resource)));
    return count(await Promise.all(workers.map((worker, index) => acts(worker, seen[index]?.document ?? null))));
  }
  const acted = workers.map(async (worker) => {
    if (guard === "Palisade") await worker.acquires(resource, { ttlMs: LEASE_MS });
    else await worker.waitsForPlainLock(resource, plainLock(act, guard));
    const deed = await acts(worker, (await worker.looksAt(resource)).document);
    if (guard === "Palisade") await worker.releases(resource);
    else await worker.releasesPlainLock(resource, "owner");
    return deed;
  });
  return count(await Promise.all(acted));
}

function plainLock({ environment: { redisUrls } }: ActRun, guard: Guard): PlainLockOptions {
  return { urls: guard === "one Redis" ? redisUrls.slice(0, 1) : redisUrls, ttlMs: LEASE_MS, nodeTimeoutMs: 5_000 };
}

function count(deeds: readonly Deed[]): Tally {
  return {
    acted: deeds.filter((deed) => deed !== "did nothing").length,
    stored: deeds.filter((deed) => deed === "stored").length,
  };
}
