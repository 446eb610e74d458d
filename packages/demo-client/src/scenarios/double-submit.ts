// One registration, submitted twice at the same moment, reaches two API nodes. Each looks whether the account is there, finds none and makes one.
import type { Scenario } from "../scenario.js";
import type { Story } from "../story.js";
import { contest, type Guard, type Tally } from "./rivals.js";

const names = ["api node 1", "api node 2"] as const;

async function tell(story: Story, guard: Guard): Promise<Tally> {
  const account = story.resource("accounts/by-email/someone");
  const rivals = await story.workers(...names);
  return await contest(story, {
    resource: account,
    rivals,
    guard,
    decide: (stored, rival) => (stored === null ? { account: `made by ${rival.name}` } : undefined),
  });
}

export const doubleSubmit: Scenario = {
  name: "double-submit",
  about: "a registration is submitted twice, and may make one account",
  acts: [
    {
      title: "with Palisade",
      actors: [...names, "lock", "gateway", "store"],
      door: "gateway",
      async play(story) {
        story.expect("one of them made an account, and one is stored", await tell(story, "Palisade"), { acted: 1, stored: 1 });
        await story.stored(story.resource("accounts/by-email/someone"));
      },
    },
    {
      title: "control: no lock",
      actors: [...names, "store"],
      door: "postgres",
      async play(story) {
        story.expect("both made an account, and the second overwrote the first", await tell(story, "nothing"), { acted: 2, stored: 2 });
        await story.stored(story.resource("accounts/by-email/someone"));
      },
    },
  ],
  proven: "The registration that was submitted twice made one account; without the lock it made two, of which one is lost.",
};
