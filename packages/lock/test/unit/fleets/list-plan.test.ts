// Changes of the list of fleets as lockers find their next steps: many at once, each with what it
// read a while ago, and each stopping anywhere.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Plan, planChange, planTogether } from "../../../src/fleets/list-plan.js";
import { markOfLongest, type Standings } from "../../../src/fleets/longest-lease.js";
import type { FleetList } from "../../../src/protocol/fleet-list.js";
import type { FleetsChange } from "../../../src/protocol/fleets.js";
import { finish, LEASE_MS, listOf, NAMES, RESOURCES, SimulatedFleet, stepOf, World } from "./simulated-fleets.js";

type Act =
  | { readonly act: "read"; readonly who: number }
  | { readonly act: "step"; readonly who: number; readonly which: number }
  | { readonly act: "wait"; readonly ms: number }
  | { readonly act: "lease"; readonly fleet: number };

const who = fc.nat(3);
const act: fc.Arbitrary<Act> = fc.oneof(
  fc.record({ act: fc.constant("read" as const), who }),
  fc.record({ act: fc.constant("step" as const), who, which: fc.nat(3) }),
  fc.record({ act: fc.constant("wait" as const), ms: fc.constantFrom(10, 60, 110) }),
  fc.record({ act: fc.constant("lease" as const), fleet: fc.nat(3) }),
);
const wish: fc.Arbitrary<FleetsChange> = fc.oneof(
  fc.record({ add: fc.constantFrom(...NAMES) }),
  fc.record({ remove: fc.constantFrom(...NAMES) }),
);

interface Changer {
  readonly wish: FleetsChange;
  plan: Plan;
}

function begin(): World {
  const first = listOf(1, "a", "b");
  return new World(NAMES.map((name) => new SimulatedFleet(name, first)));
}

describe("changes of the list of fleets", () => {
  test("F1 T1 T2 L2 keep one home for each resource, and its tokens rise, whoever changes it at once and stops anywhere", () => {
    fc.assert(
      fc.property(fc.array(wish, { minLength: 1, maxLength: 4 }), fc.array(act, { minLength: 20, maxLength: 160 }), (wishes, acts) => {
        const world = begin();
        const changers: Changer[] = wishes.map((each) => ({ wish: each, plan: { kind: "done" } }));
        for (const one of acts) {
          if (one.act === "wait") world.nowMs += one.ms;
          else if (one.act === "lease") for (const resource of RESOURCES) world.lease(NAMES[one.fleet] ?? "", resource);
          else {
            const changer = changers[one.who % changers.length];
            if (changer === undefined) continue;
            if (one.act === "read") changer.plan = planChange(world.read(), changer.wish, 0);
            else stepOf(world, changer.plan, one);
          }
        }
        for (const resource of RESOURCES) {
          const homes = [...world.fleets.values()].filter((fleet) => fleet.isHome(resource)).map(({ name }) => name);
          if (homes.length > 1) world.broken.push(`${resource} belongs to ${homes.join(" and ")}`);
        }
        expect(world.broken).toEqual([]);
      }),
      { numRuns: 1_000 },
    );
  });

  test("F1 one that stopped anywhere is finished by the same call, and taken back by the opposite one", () => {
    const changes: readonly (readonly [FleetsChange, FleetsChange])[] = [
      [{ add: "c" }, { remove: "c" }],
      [{ remove: "b" }, { add: "b" }],
    ];
    for (const [change, opposite] of changes) {
      for (const ending of [change, opposite]) {
        for (let steps = 0; steps < 6; steps++) {
          const world = begin();
          for (let done = 0; done < steps; done++) {
            const plan = planChange(world.read(), change, 0);
            if (plan.kind === "wait") world.nowMs += plan.waitMs;
            else if (plan.kind !== "done") stepOf(world, plan, { which: done });
          }
          expect(finish(world, ending), `${JSON.stringify(ending)} after ${steps} steps of ${JSON.stringify(change)}`).toEqual({
            kind: "done",
          });
          const used = [...world.fleets.values()].filter((fleet) => RESOURCES.some((resource) => fleet.isHome(resource)));
          const named = ending === change ? ("add" in change ? ["a", "b", "c"] : ["a"]) : ["a", "b"];
          expect(used.map(({ name }) => name)).toEqual(named);
        }
      }
    }
  });

  test("F1 two that were begun at once end when one of them is taken back", () => {
    const world = begin();
    const [one, other] = [{ add: "c" }, { add: "d" }].map((change) => planChange(world.read(), change, 0));
    for (const [index, plan] of [one, other].entries()) {
      if (plan?.kind !== "close") throw new Error("the others come first");
      const [name, step] = [...plan.steps][index] ?? [];
      if (name !== undefined && step !== undefined) world.take(name, step, 0);
    }
    expect(finish(world, { add: "c" })).toMatchObject({
      kind: "refused",
      why: expect.stringMatching(/another change has begun and is not finished/),
    });
    expect(finish(world, { remove: "d" })).toEqual({ kind: "done" });
    expect(finish(world, { add: "c" })).toEqual({ kind: "done" });
  });

  /** Each takes its step of a plan that was made before. */
  function takeSteps(world: World, steps: readonly (readonly [name: string, plan: Plan | undefined])[]): void {
    for (const [name, plan] of steps) {
      const step = plan?.kind === "close" || plan?.kind === "open" ? plan.steps.get(name) : undefined;
      if (step === undefined) throw new Error(`no step for ${name}`);
      world.take(name, step, 0);
    }
  }

  test("F1 one that adds and one that removes, begun at once, end as one of them says", () => {
    const before = { ...listOf(8, "b", "c"), removed: "a" };
    const world = new World(["a", "b", "c"].map((name) => new SimulatedFleet(name, before)));
    const [adding, removing] = [{ add: "a" }, { remove: "b" }].map((change) => planChange(world.read(), change, 0));
    takeSteps(world, [
      ["c", adding],
      ["b", removing],
    ]);
    expect(finish(world, { remove: "b" })).toEqual({ kind: "done" });
    expect([...world.fleets.values()].map(({ list }) => list?.fleets.map(({ name }) => name))).toContainEqual(["c"]);
    expect(finish(world, { add: "a" })).toEqual({ kind: "done" });
  });

  /** Two that take a fleet away, begun at once; the first is done before the other acts. */
  function takeBothAway(first: string, gaining: string, second: string): World {
    const world = new World(["a", "b", "c"].map((name) => new SimulatedFleet(name, listOf(1, "a", "b", "c"))));
    const [one, other] = [{ remove: first }, { remove: second }].map((change) => planChange(world.read(), change, 0));
    takeSteps(world, [[first, one]]);
    world.nowMs += LEASE_MS;
    takeSteps(world, [[gaining, planChange(world.read(), { remove: first }, 0)]]);
    takeSteps(world, [[second, other]]);
    world.nowMs += LEASE_MS;
    return world;
  }

  test("F1 a fleet that was taken away is not given a list while another one has its resources", () => {
    const world = takeBothAway("c", "b", "a");
    expect(planChange(world.read(), { remove: "a" }, 0)).toMatchObject({
      kind: "refused",
      why: expect.stringMatching(/^b has version 2 \(a, b\)/),
    });
  });

  test("F1 a fleet that was taken away comes back with another one when those have stopped that took it over", () => {
    const world = takeBothAway("b", "c", "a");
    const plan = planChange(world.read(), { add: "a" }, 0);
    expect(plan.kind === "close" && [...plan.steps.keys()]).toEqual(["c"]);
    expect(finish(world, { add: "a" })).toEqual({ kind: "done" });
  });

  test("F1 a fleet that is more than one step behind is given no list, also while another one is silent", () => {
    const added: FleetList = { ...listOf(3, "a", "b", "c", "d"), added: "c" };
    const fleets = ["a", "b", "c", "d"].map((name) => new SimulatedFleet(name, name === "b" ? listOf(1, "b", "d") : added));
    const world = new World(fleets);
    const why = /^b has version 1/;
    expect(planChange(world.read(), { add: "c" }, 0)).toMatchObject({ kind: "refused", why: expect.stringMatching(why) });
    const silent = new Map([...world.read(), ["a", undefined] as const]);
    expect(planChange(silent, { add: "c" }, 0)).toMatchObject({ kind: "refused", why: expect.stringMatching(why) });
  });

  test("F1 a fleet that answers is not lost, and one that is lost is outwaited", () => {
    const world = begin();
    expect(planChange(world.read(), { remove: "b", lost: true }, 0)).toMatchObject({
      kind: "refused",
      why: expect.stringMatching(/^b answers/),
    });
    const without = new Map([...world.read(), ["b", undefined] as const]);
    expect(planChange(without, { remove: "b" }, 10_000)).toMatchObject({ kind: "wait", why: "too few nodes of b answer" });
    expect(planChange(without, { remove: "b", lost: true }, 40)).toMatchObject({ kind: "wait", waitMs: 60 });
    expect(planChange(without, { remove: "b", lost: true }, LEASE_MS)).toMatchObject({ kind: "open" });
  });

  test("L2 F1 one that is lost is outwaited for the longest lease that any of the others knows, or that the operator says", () => {
    const knowing = (...told: readonly (number | undefined)[]): Standings => {
      const others = ["a", "c"].map((name, i) => {
        const standing = begin().fleets.get(name)?.standing(0);
        const [ms] = told.slice(i);
        return [name, standing && { ...standing, marks: new Map(ms === undefined ? [] : [[markOfLongest("id-b"), ms]]) }] as const;
      });
      return new Map([...others, ["b", undefined]]);
    };
    const lost = { remove: "b", lost: true } as const;
    expect(planChange(knowing(1_000, 3_000), lost, 80)).toMatchObject({ kind: "wait", waitMs: 3_000 });
    expect(planChange(knowing(undefined, 3_000), lost, 3_080)).toMatchObject({ kind: "open" });
    expect(planChange(knowing(), lost, 100_000)).toMatchObject({ kind: "refused", why: expect.stringMatching(/--max-ttl/) });
    expect(planChange(knowing(), { ...lost, lost: { maxTtlMs: 5_000 } }, 120)).toMatchObject({ kind: "wait", waitMs: 5_000 });
    expect(planChange(knowing(3_000), { ...lost, lost: { maxTtlMs: 1_000 } }, 80)).toMatchObject({ kind: "wait", waitMs: 3_000 });
  });
});

test("F1 fleets that were founded together are used when all of them say the same", () => {
  const zero = (key: string): FleetList => ({
    version: 0,
    key,
    fleets: [
      { name: "a", id: "" },
      { name: "b", id: "" },
    ],
  });
  const of = (...lists: readonly (FleetList | undefined)[]): Standings => {
    const fleets = lists.map((list, i) => new SimulatedFleet(NAMES[i] ?? "", list));
    return new Map(fleets.map((fleet) => [fleet.name, fleet.standing(0)]));
  };
  expect(planTogether(of(zero("k"), zero("k")))).toMatchObject({ kind: "open" });
  expect(planTogether(of(listOf(1, "a", "b"), zero("k")))).toMatchObject({ kind: "open" });
  expect(planTogether(of(listOf(1, "a", "b"), listOf(1, "a", "b")))).toEqual({ kind: "done" });
  expect(planTogether(of(zero("k"), zero("other")))).toMatchObject({ kind: "refused" });
  expect(planTogether(of(undefined, zero("k")))).toMatchObject({ kind: "refused" });
  expect(planTogether(of(listOf(1, "a"), zero("k")))).toMatchObject({ kind: "refused" });
  const silent: Standings = new Map([...of(zero("k"), zero("k")), ["a", undefined]]);
  expect(planTogether(silent)).toMatchObject({
    kind: "wait",
    why: expect.stringMatching(/^new fleets are used only when all .* a cannot$/),
  });
});
