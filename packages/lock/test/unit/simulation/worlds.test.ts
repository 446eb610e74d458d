// The simulation itself: a seed is a world, worlds are judged, and a broken one is found and
// shrunk. `npm run faults -- --sim` plays many more.
import { describe, expect, test } from "vitest";
import { seedOf, shrink } from "../../simulation/runs.js";
import { allRules, controls, type Rules } from "../../simulation/world/rules.js";
import { type Ambush, type Scenario, scenarioOf, withTurns } from "../../simulation/world/scenario.js";
import { World, type WorldResult } from "../../simulation/world/world.js";

/** A short storm with many faults: a test has to be quick. */
function shortOf(seed: number, adapted = (scenario: Scenario) => scenario): Scenario {
  const scenario = adapted(scenarioOf(seed));
  const faults = scenario.faults.map((fault) => ({ ...fault, atMs: fault.atMs % 400, lastsMs: fault.lastsMs % 300 }));
  const ambushes = scenario.ambushes.map((one) => ({ ...one, atMs: one.atMs % 400, lastsMs: 100 + (one.lastsMs % 200) }));
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
    awayMs: 0,
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

/** More callers than locks, for one and for several. */
const crowded = (seed: number): Scenario => ({
  ...shortOf(seed, withTurns),
  chance: 2 * seed + 1,
  awayMs: 0,
  clients: 4,
  resources: 3,
  stormMs: 1_000,
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

test("a world is the same in every line when its seed is played again, whether or not its trace is kept, and another with another seed", async () => {
  const [once, again, other] = [await play(shortOf(17)), await play(shortOf(17)), await play(shortOf(5))];
  expect(once.trace?.lines.length).toBeGreaterThan(500);
  expect(again.trace?.lines).toEqual(once.trace?.lines);
  expect(other.trace?.hash).not.toBe(once.trace?.hash);
  const { acquisitions, faults } = once;
  expect(await new World(shortOf(17)).play()).toMatchObject({ acquisitions, faults });
});

describe("in the worlds", () => {
  test("T1 T2 L1 L2 W1 no promise is broken, whatever fails", async () => {
    for (let seed = 100; seed < 105; seed++) expect((await new World(shortOf(seed)).play()).violations, `seed ${seed}`).toEqual([]);
  });

  test.for([
    ["left behind", leftBehind],
    ["belated", belated],
    ["half-way", halfWay],
    ["two founders", twoFounders],
    ["late seal", lateSeal],
  ] as const)("T2 no promise is broken when the ambush %s strikes", async ([kind, scenarioFor]) => {
    let struck = 0;
    for (let seed = 1; seed <= 3; seed++) {
      const { violations, ambushes } = await new World(scenarioFor(seed)).play();
      expect(violations, `seed ${seed}`).toEqual([]);
      struck += ambushes[kind];
    }
    expect(struck).toBeGreaterThan(0);
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
});

/** Which rule, within how many worlds, of which kind, and what the checkers then say. */
const tokens = /^(T1|T2|issued)/;
const switchedOff: readonly (readonly [string, number, (seed: number) => Scenario, RegExp])[] = [
  ["seal without ownership", 60, lateSeal, tokens],
  ["no seal round", 20, shortOf, tokens],
  ["less than a majority", 20, shortOf, /^(T1|T2|L2|ballots)/],
  ["old counters believed", 60, leftBehind, tokens],
  ["nonces ignored", 60, belatedWildly, tokens],
  ["epochs that nobody moves", 150, halfWayOfFew, /^(T1|T2|issued|ballots)/],
  ["founders that look once", 60, twoFounders, /does not recover/],
  ["release whoever holds it", 40, shortOf, /^(L2|T1|T2)/],
  ["release nothing", 20, shortOf, /^(left behind|forgotten)/],
  ["refused without a ticket", 20, turns, /^(W1|left behind)/],
  ["parts that nobody keeps", 40, crowded, /^W1: of \d+ that waited for several/],
  ["tickets that stay", 20, crowded, /^(W1|left behind)/],
  ["votes of any generation", 20, renewed, /^(L2|T1|T2)/],
];

describe("what the worlds find out", () => {
  test.for(switchedOff)("T1 T2 L2 W1 M1 something breaks without this rule: %s", async ([control, worlds, worldOf, said]) => {
    const found = await firstBroken(controls[control] as Rules, worlds, worldOf);
    const [broken] = found?.outcome.violations ?? [];
    expect(`${broken?.promise}: ${broken?.what}`).toMatch(said);
  });

  test("becomes smaller, stays broken, and can be repeated by its seed and path", async () => {
    const rules = controls["no seal round"] as Rules;
    const { seed } = (await firstBroken(rules, 20, scenarioOf)) ?? { seed: 0 };
    const small = await shrink(seed, rules, (worlds) => worlds === 20);
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
