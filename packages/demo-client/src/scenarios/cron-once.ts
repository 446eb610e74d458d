// The same job is due on every machine at the same second, and must run once. The lock alone would not do: who comes second gets it, too. It is the record of the run,
// read behind the fence, that tells the second one.
import type { Scenario } from "../scenario.js";
import type { Story } from "../story.js";
import { contest, type Guard, type Tally } from "./rivals.js";

const names = ["scheduler 1", "scheduler 2", "scheduler 3", "scheduler 4"] as const;
const due = "02:00";

async function tell(story: Story, guard: Guard): Promise<Tally> {
  const job = story.resource("jobs/nightly");
  const rivals = await story.workers(...names);
  return await contest(story, {
    resource: job,
    rivals,
    guard,
    decide: (stored, rival) => (stored?.lastRun === due ? undefined : { lastRun: due, by: rival.name }),
  });
}

export const cronOnce: Scenario = {
  name: "cron-once",
  about: "many schedulers, one run",
  acts: [
    {
      title: "with Palisade",
      actors: [...names, "lock", "gateway", "store"],
      door: "gateway",
      async play(story) {
        story.expect("the job ran once, and its record is stored", await tell(story, "Palisade"), { acted: 1, stored: 1 });
      },
    },
    {
      title: "control: no lock",
      actors: [...names, "store"],
      door: "postgres",
      async play(story) {
        story.expect("the job ran on every machine", (await tell(story, "nothing")).acted, names.length);
      },
    },
  ],
  proven: "Four schedulers, one run. Without the lock the job ran four times.",
};
