// Workers that all read, decide and write at the same moment, under a lock or under none.
import type { Act, ActRun, Scenario, Worker } from "../engine/act.js";
import type { PlainLockOptions } from "../worker/leases.js";
import type { Document, Resource } from "../worker/protocol.js";

// No lease may run out here, however slow the machine: it is about which worker gets in.
const LEASE_MS = 30_000;

/** What keeps the workers apart. */
type Guard = "nothing" | "one Redis" | "Redlock" | "Palisade";

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
interface Tally {
  readonly acted: number;
  readonly stored: number;
}

type Deed = "did nothing" | "refused" | "stored";

async function contest(act: ActRun, { resource, workers, guard, decide }: Contest): Promise<Tally> {
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

// A job that is due on every machine at the same moment, and must run once. The lock alone is not enough: the
// second scheduler gets it too, later. What the first has stored, read behind the fence, tells the second.

const schedulers = ["scheduler 1", "scheduler 2", "scheduler 3", "scheduler 4"] as const;
const DUE = "02:00";

async function runJob(act: ActRun, guard: Guard): Promise<Tally> {
  return await contest(act, {
    resource: act.resource("jobs/nightly"),
    workers: await act.workers(...schedulers),
    guard,
    decide: (stored, { name }) => (stored?.lastRun === DUE ? undefined : { lastRun: DUE, by: name }),
  });
}

export const cronOnce: Scenario = {
  name: "cron-once",
  about: "many schedulers, one run",
  acts: [
    {
      title: "with Palisade",
      actors: [...schedulers, "lock", "gateway", "store"],
      route: "gateway",
      async play(act) {
        act.expect("the job ran once, and its record is stored", await runJob(act, "Palisade"), { acted: 1, stored: 1 });
      },
    },
    {
      title: "control: no lock",
      actors: [...schedulers, "store"],
      route: "postgres",
      async play(act) {
        act.expectDamage("the job ran on every machine", (await runJob(act, "nothing")).acted, schedulers.length);
      },
    },
  ],
  proven: "Four schedulers, one run. Without the lock the job ran four times.",
};

// Five requests at once, and a limit of three: each reads the items, finds room, and adds one.

const requests = ["request 1", "request 2", "request 3", "request 4", "request 5"] as const;
const LIMIT = 3;

function itemsOf(cart: Document | null): readonly unknown[] {
  return Array.isArray(cart?.items) ? cart.items : [];
}

interface Shopping {
  readonly acted: number;
  readonly accepted: number;
  readonly stored: number;
}

async function shop(act: ActRun, guard: Guard): Promise<Shopping> {
  const cart = act.resource("carts/5");
  const { acted, stored: accepted } = await contest(act, {
    resource: cart,
    workers: await act.workers(...requests),
    guard,
    decide: (stored, worker) => (itemsOf(stored).length < LIMIT ? { items: [...itemsOf(stored), worker.name.slice(-1)] } : undefined),
  });
  return { acted, accepted, stored: itemsOf(await act.stored(cart)).length };
}

function guarded(title: string, guard: Guard, route: Act["route"]): Act {
  return {
    title,
    actors: [...requests, "lock", ...(route === "gateway" ? ["gateway"] : []), "store"],
    route,
    async play(act) {
      const all = { acted: LIMIT, accepted: LIMIT, stored: LIMIT };
      act.expect("three find room, three are accepted, three are stored", await shop(act, guard), all);
    },
  };
}

export const threeItems: Scenario = {
  name: "three-items",
  about: "five requests at once, where three are allowed",
  acts: [
    {
      title: "control: no lock",
      actors: [...requests, "store"],
      route: "postgres",
      async play(act) {
        const { accepted, stored } = await shop(act, "nothing");
        act.expectDamage("all five are accepted where three are allowed", accepted, 5);
        act.expectDamage("one item is stored: each overwrote the one before", stored, 1);
      },
    },
    guarded("a lock on one Redis", "one Redis", "postgres"),
    guarded("Redlock on five", "Redlock", "postgres"),
    guarded("Palisade", "Palisade", "gateway"),
  ],
  proven:
    "Without a lock five get in where three are allowed. With any lock it is three while nothing goes wrong; the other scenarios are about the rest.",
};
