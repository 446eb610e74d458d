// The simulation itself: a seed is a world, worlds are judged, and a broken one is found and
// shrunk. `npm run faults -- --sim` plays many more.
import { describe, expect, test } from "vitest";
import { shrink } from "../../simulation/shrink.js";
import { seedOf } from "../../simulation/workers.js";
import { controls } from "../../simulation/world/controls.js";
import { allRules, type Rules } from "../../simulation/world/rules.js";
import { type Ambush, type Scenario, scenarioOf, withTurns } from "../../simulation/world/scenario.js";
import { World, type WorldResult } from "../../simulation/world/world.js";

/** A short storm with many faults: a test has to be quick. */
function shortOf(seed: number, adapted = (scenario: Scenario) => scenario): Scenario {
  const scenario = adapted(scenarioOf(seed));
  const faults = scenario.faults.map((fault) => ({
    ...fault,
    atMs: fault.atMs % 400,
    lastsMs: fault.lastsMs % 300,
  }));
  const ambushes = scenario.ambushes.map((ambush) => ({
    ...ambush,
    atMs: ambush.atMs % 400,
    lastsMs: 100 + (ambush.lastsMs % 200),
  }));
  return { ...scenario, stormMs: 400, clients: 2, callers: 2, resources: 2, faults, ambushes };
}

/** A quiet world in which nothing but ambushes happens, one after the other. */
const ambushed =
  (kind: Ambush["kind"], rest: Partial<Scenario>) =>
  (seed: number): Scenario => ({
    chance: seed,
    nodes: 3,
    clients: 3,
    callers: 1,
    resources: 12,
    ttlMs: 100,
    nodeTimeoutMs: 60,
    leastMs: 0.2,
    jitterMs: 1,
    appendfsync: "no",
    clocks: "even",
    stormMs: 6_000,
    faults: [],
    ambushes: [0, 1, 2, 3, 4].map((turn) => ({
      kind,
      atMs: 300 + turn * 1_100,
      lastsMs: 700,
      node: turn,
      strength: 0.5,
    })),
    wants: "anything",
    ...rest,
  });
const leftBehind = ambushed("left behind", { clients: 2 });
const belated = ambushed("belated", { ttlMs: 250, nodeTimeoutMs: 250, resources: 4 });
/** With wild clocks L2 is not judged: a world goes on until a token comes twice or falls. */
const belatedWildly = ambushed("belated", { ttlMs: 250, nodeTimeoutMs: 250, resources: 4, clocks: "wild" });
const halfWay = ambushed("half-way", {
  clients: 4,
  resources: 8,
  ttlMs: 600,
  nodeTimeoutMs: 500,
  clocks: "wild",
});
/** The fewer resources, the more often two want the same one just then. */
const halfWayOfFew = ambushed("half-way", { clients: 4, resources: 4, ttlMs: 600, nodeTimeoutMs: 500, clocks: "wild" });
const twoFounders = ambushed("two founders", {
  stormMs: 500,
  ambushes: [{ kind: "two founders", atMs: 0, lastsMs: 300, node: 1, strength: 0.5 }],
});
const lateSeal = ambushed("late seal", {
  callers: 2,
  resources: 1,
  ttlMs: 900,
  nodeTimeoutMs: 400,
  clocks: "wild",
  stormMs: 2_500,
  ambushes: Array.from({ length: 20 }, (_, turn) => ({
    kind: "late seal",
    atMs: 100 + turn * 120,
    lastsMs: 110,
    node: 0,
    strength: (turn % 5) / 5,
  })),
});

/** One lock, for which all wait; most processes stand still, and go on again. */
const turns = ambushed("standing still", {
  clients: 8,
  resources: 1,
  ttlMs: 600,
  stormMs: 2_600,
  ambushes: [0, 1].map((turn) => ({ kind: "standing still", atMs: 300 + turn * 1_200, lastsMs: 120, node: turn, strength: 0.5 })),
  wants: "turns",
});

/** All processes but the first of each host have another server in the place of the last. */
const renewed = ambushed("left behind", {
  clients: 4,
  stormMs: 3_500,
  ambushes: [],
  faults: [0, 1, 2, 3].map((client) => ({ kind: "crash client", atMs: 900 + 500 * client, lastsMs: 20, node: 0, client, strength: 0.5 })),
});
const twoLists: Rules = { ...allRules, lists: "two" };

const play = (scenario: Scenario): Promise<WorldResult> => new World(scenario, { tracing: "traced" }).play();

/** The first world of a run in which something breaks. */
async function firstBroken(
  rules: Rules,
  worlds: number,
  worldOf: (seed: number) => Scenario = shortOf,
): Promise<{ readonly seed: number; readonly outcome: WorldResult } | undefined> {
  for (let index = 0; index < worlds; index++) {
    const seed = seedOf(1, index);
    const outcome = await new World(worldOf(seed), { rules }).play();
    if (outcome.violations.length > 0) return { seed, outcome };
  }
  return undefined;
}

describe("a simulated world", () => {
  test("is the same in every line when its seed is played again", async () => {
    const [once, again] = [await play(shortOf(17)), await play(shortOf(17))];
    expect(once.trace?.lines.length).toBeGreaterThan(500);
    expect(again.trace?.lines).toEqual(once.trace?.lines);
    expect(again.trace?.hash).toBe(once.trace?.hash);
  });

  test("is another with another seed", async () => {
    const [one, other] = [await play(shortOf(4)), await play(shortOf(5))];
    expect(one.trace?.hash).not.toBe(other.trace?.hash);
  });

  test("is the same whether or not its trace is kept", async () => {
    const { acquisitions, events, faults } = await play(shortOf(13));
    expect(await new World(shortOf(13)).play()).toMatchObject({ acquisitions, events, faults });
  });

  test("T1 breaks no promise, whatever fails in it", async () => {
    for (let seed = 100; seed < 108; seed++) expect((await new World(shortOf(seed)).play()).violations, `seed ${seed}`).toEqual([]);
  });

  test.for([
    ["left behind", leftBehind],
    ["belated", belated],
    ["half-way", halfWay],
    ["two founders", twoFounders],
    ["late seal", lateSeal],
  ] as const)("T2 breaks no promise when the ambush %s strikes", async ([kind, scenarioFor]) => {
    let struck = 0;
    for (let seed = 1; seed <= 8; seed++) {
      const { violations, ambushes } = await new World(scenarioFor(seed)).play();
      expect(violations, `seed ${seed}`).toEqual([]);
      struck += ambushes[kind];
    }
    expect(struck).toBeGreaterThan(0);
  });
});

test("W1 those that run have their turns while others die, give up and stand still, and nothing of theirs stays", async () => {
  for (let seed = 1; seed <= 4; seed++) {
    const { violations, acquisitions, ambushes } = await new World(turns(seed)).play();
    expect([violations, ambushes["standing still"], acquisitions > 50], `seed ${seed}`).toEqual([[], 2, true]);
    expect((await new World(shortOf(seed, withTurns)).play()).violations, `short seed ${seed}`).toEqual([]);
  }
});

test("M1 T2 L2 two configurations at once break no promise: the nodes say who votes", async () => {
  for (let seed = 1; seed <= 3; seed++) {
    const { violations, acquisitions } = await new World(renewed(seed), { rules: twoLists }).play();
    expect([violations, acquisitions > 20], `seed ${seed}`).toEqual([[], true]);
  }
});

describe("what the worlds find out", () => {
  test("T2 a token comes twice when a seal does not ask who has the lock", async () => {
    const found = await firstBroken(controls["seal without ownership"] ?? allRules, 60, lateSeal);
    expect(found?.outcome.violations[0]?.promise).toMatch(/T1|T2|issued/);
  });

  test.for(["no roll call", "refused without a ticket", "tickets that stay"])(
    "W1 somebody waits too long, or something stays: %s",
    async (control) => {
      const found = await firstBroken(controls[control] ?? allRules, 20, turns);
      expect(found?.outcome.violations[0]?.promise).toMatch(/W1|left behind/);
    },
  );

  test("M1 two hold one lock when votes of any generation count", async () => {
    const found = await firstBroken(controls["votes of any generation"] ?? allRules, 20, renewed);
    expect(found?.outcome.violations[0]?.promise).toMatch(/L2|T1|T2/);
  });

  test("T2 without seals tokens come twice or fall", async () => {
    const found = await firstBroken(controls["no seal round"] ?? allRules, 20);
    expect(found?.outcome.violations[0]?.promise).toMatch(/T1|T2|issued/);
  });

  test("T2 with less than a majority tokens come twice or fall", async () => {
    const found = await firstBroken(controls["less than a majority"] ?? allRules, 20);
    expect(found?.outcome.violations[0]?.promise).toMatch(/T1|T2|L2|ballots/);
  });

  test("T1 tokens come twice or fall when counters of before a loss are believed", async () => {
    const found = await firstBroken(controls["old counters believed"] ?? allRules, 60, leftBehind);
    expect(found?.outcome.violations[0]?.promise).toMatch(/T1|T2|issued/);
  });

  test("T2 tokens come twice or fall when an admission may be of a memory that was lost meanwhile", async () => {
    const found = await firstBroken(controls["nonces ignored"] ?? allRules, 60, belatedWildly);
    expect(found?.outcome.violations[0]?.promise).toMatch(/T1|T2|issued/);
  });

  test("T2 tokens come twice or fall when a floor is read and its node keeps its epoch", async () => {
    const found = await firstBroken(controls["epochs that nobody moves"] ?? allRules, 150, halfWayOfFew);
    expect(found?.outcome.violations[0]?.promise).toMatch(/T1|T2|issued|ballots/);
  });

  test("L2 a fleet falls into two when its founders look once", async () => {
    const found = await firstBroken(controls["founders that look once"] ?? allRules, 60, twoFounders);
    expect(found?.outcome.violations[0]?.what).toMatch(/does not recover/);
  });

  test("L2 two hold one lock when a release takes it from anybody", async () => {
    const found = await firstBroken(controls["release whoever holds it"] ?? allRules, 40);
    expect(found?.outcome.violations[0]?.promise).toMatch(/L2|T1|T2/);
  });

  test("keys are left behind when a release deletes nothing", async () => {
    const found = await firstBroken(controls["release nothing"] ?? allRules, 20);
    expect(found?.outcome.violations[0]?.promise).toMatch(/left behind|forgotten/);
  });

  test("becomes smaller, stays broken, and can be repeated by its seed and path", async () => {
    const rules = controls["no seal round"] ?? allRules;
    const { seed } = (await firstBroken(rules, 20, scenarioOf)) ?? { seed: 0 };
    const small = await shrink(seed, { rules, isEnough: (worlds) => worlds === 40 });
    expect(small?.worlds).toBeGreaterThan(1);
    const scenario = scenarioOf(seed, small?.path);
    expect(scenario).toEqual(small?.scenario);
    expect(scenario.faults.length).toBeLessThan(scenarioOf(seed).faults.length);
    const again = await new World(scenario, { rules, tracing: "traced" }).play();
    expect(again.violations.length).toBeGreaterThan(0);
    // Time, actor, event.
    expect(again.trace?.lines[0]).toMatch(/^ +\d+\.\d{3} {2}\S+ +\S/);
  });
});
