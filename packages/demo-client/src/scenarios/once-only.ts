// Work that must be done once and is begun by several workers at the same moment: a job that is due
// on every machine, and a registration that is submitted twice. The lock alone is not enough: the
// second worker gets it too, later. What the first has stored, read behind the fence, tells the
// second.
import type { Act, ActRun, Scenario } from "../engine/act-run.js";
import type { Document } from "../worker/protocol.js";
import { contest, type Guard, type Tally } from "./contest.js";

interface Work {
  readonly resource: string;
  readonly workers: readonly string[];
  isDone(stored: Document | null): boolean;
  done(by: string): Document;
}

const job: Work = {
  resource: "jobs/nightly",
  workers: ["scheduler 1", "scheduler 2", "scheduler 3", "scheduler 4"],
  isDone: (stored) => stored?.lastRun === "02:00",
  done: (by) => ({ lastRun: "02:00", by }),
};

const registration: Work = {
  resource: "accounts/by-email/someone",
  workers: ["api node 1", "api node 2"],
  isDone: (stored) => stored !== null,
  done: (by) => ({ account: `made by ${by}` }),
};

async function run(act: ActRun, work: Work, guard: Guard): Promise<Tally> {
  return await contest(act, {
    resource: act.resource(work.resource),
    workers: await act.workers(...work.workers),
    guard,
    decide: (stored, { name }) => (work.isDone(stored) ? undefined : work.done(name)),
  });
}

function locked({ workers }: Work, play: Act["play"]): Act {
  return { title: "with Palisade", actors: [...workers, "lock", "gateway", "store"], route: "gateway", play };
}

function unlocked({ workers }: Work, play: Act["play"]): Act {
  return { title: "control: no lock", actors: [...workers, "store"], route: "postgres", play };
}

export const cronOnce: Scenario = {
  name: "cron-once",
  about: "many schedulers, one run",
  acts: [
    locked(job, async (act) => {
      act.expect("the job ran once, and its record is stored", await run(act, job, "Palisade"), { acted: 1, stored: 1 });
    }),
    unlocked(job, async (act) => {
      act.expectDamage("the job ran on every machine", (await run(act, job, "nothing")).acted, job.workers.length);
    }),
  ],
  proven: "Four schedulers, one run. Without the lock the job ran four times.",
};

export const doubleSubmit: Scenario = {
  name: "double-submit",
  about: "a registration is submitted twice, and may make one account",
  acts: [
    locked(registration, async (act) => {
      const tally = await run(act, registration, "Palisade");
      act.expect("one of them made an account, and one is stored", tally, { acted: 1, stored: 1 });
      await act.stored(act.resource(registration.resource));
    }),
    unlocked(registration, async (act) => {
      const tally = await run(act, registration, "nothing");
      act.expectDamage("both made an account, and the second overwrote the first", tally, { acted: 2, stored: 2 });
      await act.stored(act.resource(registration.resource));
    }),
  ],
  proven: "The registration that was submitted twice made one account; without the lock it made two, of which one is lost.",
};
