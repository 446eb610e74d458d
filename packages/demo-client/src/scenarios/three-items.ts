// Five requests at once, and a limit of three: each reads how many there are, finds room, and adds one.
import type { Act, Scenario } from "../scenario.js";
import type { Story } from "../story.js";
import type { Document } from "../worker-protocol.js";
import { contest, type Guard } from "./rivals.js";

const names = ["request 1", "request 2", "request 3", "request 4", "request 5"] as const;
const limit = 3;

function itemsOf(cart: Document | null): readonly unknown[] {
  return Array.isArray(cart?.items) ? cart.items : [];
}

interface Ending {
  readonly acted: number;
  readonly accepted: number;
  readonly stored: number;
}

async function tell(story: Story, guard: Guard): Promise<Ending> {
  const cart = story.resource("carts/5");
  const rivals = await story.workers(...names);
  const { acted, stored } = await contest(story, {
    resource: cart,
    rivals,
    guard,
    decide: (stored, rival) => (itemsOf(stored).length < limit ? { items: [...itemsOf(stored), rival.name.slice(-1)] } : undefined),
  });
  return { acted, accepted: stored, stored: itemsOf(await story.stored(cart)).length };
}

function guarded(title: string, guard: Guard, door: Act["door"]): Act {
  return {
    title,
    actors: [...names, "lock", ...(door === "gateway" ? ["gateway"] : []), "store"],
    door,
    async play(story) {
      const all = { acted: limit, accepted: limit, stored: limit };
      story.expect("three find room, three are accepted, three are stored", await tell(story, guard), all);
    },
  };
}

export const threeItems: Scenario = {
  name: "three-items",
  about: "five requests at once, where three are allowed",
  acts: [
    {
      title: "control: no lock",
      actors: [...names, "store"],
      door: "postgres",
      async play(story) {
        const { accepted, stored } = await tell(story, "nothing");
        story.expect("all five are accepted where three are allowed", accepted, 5);
        story.expect("one item is stored: each overwrote the one before", stored, 1);
      },
    },
    guarded("a lock on one Redis", "one Redis", "postgres"),
    guarded("Redlock on five", "Redlock", "postgres"),
    guarded("Palisade", "Palisade", "gateway"),
  ],
  proven:
    "Without a lock five get in where three are allowed. With any lock it is three while nothing goes wrong; the other stories are about the rest.",
};
