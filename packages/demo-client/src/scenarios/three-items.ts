// Five requests at once, and a limit of three: each reads the items, finds room, and adds one.
import type { Act, ActRun, Scenario } from "../engine/act-run.js";
import type { Document } from "../worker/protocol.js";
import { contest, type Guard } from "./contest.js";

const requests = ["request 1", "request 2", "request 3", "request 4", "request 5"] as const;
const LIMIT = 3;

function itemsOf(cart: Document | null): readonly unknown[] {
  return Array.isArray(cart?.items) ? cart.items : [];
}

interface Outcome {
  readonly acted: number;
  readonly accepted: number;
  readonly stored: number;
}

async function run(act: ActRun, guard: Guard): Promise<Outcome> {
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
      act.expect("three find room, three are accepted, three are stored", await run(act, guard), all);
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
        const { accepted, stored } = await run(act, "nothing");
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
