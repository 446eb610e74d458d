// Several fleets are lost at once, at any moment of changes that were begun: what the operator's
// word for all of them does.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { newestOf, type Plan, planChange } from "../../../src/fleets/list-plan.js";
import { namesIn } from "../../../src/protocol/fleet-list.js";
import type { FleetsChange } from "../../../src/protocol/fleets.js";
import { finish, LEASE_MS, listOf, NAMES, RESOURCES, SimulatedFleet, stepOf, World } from "./simulated-fleets.js";

const begin = (...names: readonly string[]): World => new World(NAMES.map((name) => new SimulatedFleet(name, listOf(1, ...names))));

function lose(world: World, ...names: readonly string[]): World {
  for (const name of names) world.lost.add(name);
  return world;
}

/** Some steps of a change, and then nobody goes on. */
function half(world: World, change: FleetsChange, steps: number): void {
  for (let done = 0; done < steps; done++) {
    const plan = planChange(world.read(), change, 0);
    if (plan.kind === "wait") world.nowMs += plan.waitMs;
    else if (plan.kind !== "done") stepOf(world, plan, { which: done });
  }
}

const used = (world: World): readonly string[] => namesIn(newestOf(world.read()));

describe("fleets that are lost at once", () => {
  test("F1 are taken away by one call, and not one without the other", () => {
    const world = lose(begin("a", "b", "c"), "a", "b");
    expect(planChange(world.read(), { remove: "a", lost: true }, 0)).toMatchObject({
      kind: "wait",
      why: "too few nodes of b answer; what is lost besides a has to be named with it",
    });
    expect(finish(world, { remove: ["a", "b"], lost: true })).toEqual({ kind: "done" });
    expect(used(world)).toEqual(["c"]);
    expect(world.fleets.get("c")?.list?.version).toBe(3);
  });

  test("F1 T1 are not taken away where none of the list is left", () => {
    const world = lose(begin("a", "b"), "a", "b");
    expect(planChange(world.read(), { remove: ["a", "b"], lost: true }, 0)).toMatchObject({
      kind: "refused",
      why: expect.stringMatching(/^a, b are all fleets of the list: none is left that knows its tokens/),
    });
  });

  test("F1 are taken away wherever a change stopped that had been begun, which goes on without them", () => {
    const changes: readonly FleetsChange[] = [{ add: "d" }, { remove: "c" }, { remove: "a" }];
    for (const change of changes) {
      for (const lost of [["a"], ["a", "b"], ["a", "c"], ["a", "b", "c"]]) {
        for (let steps = 0; steps < 7; steps++) {
          const world = begin("a", "b", "c");
          half(world, change, steps);
          lose(world, ...lost);
          // What only lost ones had heard of is not known any more.
          if (used(world).every((name) => lost.includes(name))) continue;
          expect(finish(world, { remove: lost, lost: true }), `${lost} after ${steps} steps of ${JSON.stringify(change)}`).toEqual({
            kind: "done",
          });
          expect(used(world).filter((name) => lost.includes(name))).toEqual([]);
          const homes = RESOURCES.map((resource) =>
            [...world.fleets.values()].filter((one) => !world.lost.has(one.name) && one.isHome(resource)),
          );
          expect(homes.map((fleets) => fleets.length)).toEqual(RESOURCES.map(() => 1));
        }
      }
    }
  });

  test("L2 F1 are outwaited, all of them, for the longest lease of any", () => {
    const world = lose(begin("a", "b", "c"), "a", "b");
    const change = { remove: ["a", "b"], lost: true } as const;
    expect(planChange(world.read(), change, 40)).toMatchObject({ kind: "wait", waitMs: LEASE_MS - 40, outwaits: true });
    expect(planChange(world.read(), { ...change, lost: { maxTtlMs: 5_000 } }, 120)).toMatchObject({ kind: "wait", waitMs: 5_000 });
    const untold = new Map([...world.read()].map(([name, standing]) => [name, standing && { ...standing, marks: new Map() }]));
    expect(planChange(untold, change, 100_000)).toMatchObject({
      kind: "refused",
      why: expect.stringMatching(/leases of a may last is not known/),
    });
  });

  test("F1 servers that came back without the memory of their fleet are no part of it", () => {
    const world = begin("a", "b");
    const standings = world.read();
    const stranger = { ...world.fleets.get("b")?.standing(world.nowMs), id: "another", list: undefined };
    const change = { remove: "b", lost: true } as const;
    expect(planChange(standings, change, 0)).toMatchObject({ kind: "refused", why: expect.stringMatching(/^b answers/) });
    expect(planChange(new Map([...standings, ["b", stranger as never]]), change, LEASE_MS)).toMatchObject({ kind: "open" });
  });
});

type Act = { readonly act: "read" | "step" | "wait" | "lease" | "lose"; readonly which: number; readonly who: number };
const act: fc.Arbitrary<Act> = fc.record({
  act: fc.constantFrom("read", "step", "step", "wait", "lease", "lease", "lose"),
  which: fc.nat(3),
  who: fc.nat(3),
});
const wish: fc.Arbitrary<FleetsChange> = fc.oneof(
  fc.record({ add: fc.constantFrom(...NAMES) }),
  fc.record({ remove: fc.constantFrom(...NAMES) }),
);

interface Changer {
  readonly wish: FleetsChange | "lost";
  plan: Plan;
  saidAt: number;
}

test("F1 T1 T2 L2 one home for each resource while any are lost in the middle of changes, and said to be", () => {
  fc.assert(
    fc.property(fc.array(wish, { minLength: 0, maxLength: 2 }), fc.array(act, { minLength: 20, maxLength: 160 }), (wishes, acts) => {
      const world = begin("a", "b", "c");
      const changers: Changer[] = [...wishes, "lost" as const, "lost" as const].map((each) => ({
        wish: each,
        plan: { kind: "done" },
        saidAt: 0,
      }));
      for (const { act: kind, which, who } of acts) {
        const changer = changers[who % changers.length];
        if (kind === "wait") world.nowMs += 60;
        else if (kind === "lease") for (const resource of RESOURCES) world.lease(NAMES[which] ?? "", resource);
        else if (kind === "lose") {
          if (world.lost.size < 2) world.lost.add(NAMES[which] ?? "");
          for (const each of changers) each.saidAt = world.nowMs;
        } else if (changer !== undefined && kind === "step") stepOf(world, changer.plan, { which, isLost: changer.wish === "lost" });
        else if (changer !== undefined) {
          const said: FleetsChange = { remove: [...world.lost], lost: true };
          if (changer.wish !== "lost" || world.lost.size > 0)
            changer.plan = planChange(world.read(), changer.wish === "lost" ? said : changer.wish, world.nowMs - changer.saidAt);
        }
      }
      for (const resource of RESOURCES) {
        const homes = [...world.fleets.values()].filter((fleet) => !world.lost.has(fleet.name) && fleet.isHome(resource));
        if (homes.length > 1) world.broken.push(`${resource} belongs to ${homes.map(({ name }) => name).join(" and ")}`);
      }
      expect(world.broken).toEqual([]);
    }),
    { numRuns: 2_000 },
  );
});
