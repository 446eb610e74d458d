// One registration, submitted twice at the same moment, reaches two API nodes. Each looks whether the account is there, finds none and makes one.
import type { Scenario } from "../scenario.js";
import type { Story } from "../story.js";
import { contest, type Guard } from "./rivals.js";

const names = ["api node 1", "api node 2"] as const;

async function tell(story: Story, guard: Guard): Promise<number> {
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
        story.expect("one account was made", await tell(story, "Palisade"), 1);
        await story.stored(story.resource("accounts/by-email/someone"));
      },
    },
    {
      title: "control: no lock",
      actors: [...names, "store"],
      door: "postgres",
      async play(story) {
        story.expect("both made an account, and the second overwrote the first", await tell(story, "nothing"), 2);
        await story.stored(story.resource("accounts/by-email/someone"));
      },
    },
  ],
  proven: "The registration that was submitted twice made one account; without the lock it made two, of which one is lost.",
};
