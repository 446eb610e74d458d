// A world as data: everything that a seed decides. fast-check draws it, so that a world in which a
// promise was broken shrinks to the faults that it takes.
import fc from "fast-check";

export const faultKinds = [
  "cut",
  "hold requests",
  "hold replies",
  "partition",
  "slow",
  "refuse",
  "second time",
  "stop node",
  "crash node",
  "lose tail",
  "wipe node",
  "flush node",
  "flush scripts",
  "jump node",
  "stop client",
  "crash client",
  "jump client",
] as const;

export type FaultKind = (typeof faultKinds)[number];

export interface Fault {
  readonly kind: FaultKind;
  readonly atMs: number;
  readonly lastsMs: number;
  /** Index of the node and of the host, modulo how many there are. */
  readonly node: number;
  readonly client: number;
  /** From 0 to 1. */
  readonly strength: number;
}

export const ambushKinds = ["half-way", "left behind", "belated", "two founders", "late seal", "standing still"] as const;

export type AmbushKind = (typeof ambushKinds)[number];

/** Several faults at once, at an awaited moment. */
export interface Ambush {
  readonly kind: AmbushKind;
  /** The wait begins then. */
  readonly atMs: number;
  readonly lastsMs: number;
  readonly node: number;
  readonly strength: number;
}

export interface Scenario {
  readonly chance: number;
  readonly nodes: 3 | 5;
  readonly clients: number;
  /** Per process. */
  readonly callers: number;
  readonly resources: number;
  readonly ttlMs: number;
  readonly nodeTimeoutMs: number;
  readonly leastMs: number;
  readonly jitterMs: number;
  /** How much further the last client is from the nodes, each way, where all wait for their turns. */
  readonly awayMs: number;
  readonly appendfsync: "always" | "everysec" | "no";
  /** `even`: about the same rate, and jumps only where L2 holds nevertheless. `wild`: anything. */
  readonly clocks: "even" | "wild";
  /** How long faults happen. */
  readonly stormMs: number;
  readonly faults: readonly Fault[];
  readonly ambushes: readonly Ambush[];
  /** `turns`: all wait for what others have, and nothing fails but processes. */
  readonly wants: "anything" | "turns";
}

const weights: Readonly<Record<FaultKind, number>> = {
  cut: 12,
  "hold requests": 6,
  "hold replies": 6,
  partition: 4,
  slow: 6,
  refuse: 3,
  "second time": 4,
  "stop node": 6,
  "crash node": 6,
  "lose tail": 4,
  "wipe node": 8,
  "flush node": 3,
  "flush scripts": 2,
  "jump node": 4,
  "stop client": 8,
  "crash client": 3,
  "jump client": 3,
};

const whole = (min: number, max: number): fc.Arbitrary<number> => fc.integer({ min, max });

const LONGEST_STORM_MS = 9_000;
/** Now and then while the fleet is being founded. */
const moment = fc.oneof({ weight: 1, arbitrary: whole(0, 40) }, { weight: 8, arbitrary: whole(0, LONGEST_STORM_MS) });

const fault: fc.Arbitrary<Fault> = fc.record({
  kind: fc.oneof(...faultKinds.map((kind) => ({ weight: weights[kind], arbitrary: fc.constant(kind) }))),
  atMs: moment,
  lastsMs: fc.oneof(whole(1, 60), whole(20, 600), whole(200, 2_500)),
  node: whole(0, 4),
  client: whole(0, 3),
  strength: whole(0, 100).map((percent) => percent / 100),
});

const ambushOf = (kind: AmbushKind, atMs: fc.Arbitrary<number>): fc.Arbitrary<Ambush> =>
  fc.record({
    kind: fc.constant(kind),
    atMs,
    lastsMs: whole(100, 800),
    node: whole(0, 4),
    strength: whole(0, 100).map((percent) => percent / 100),
  });

const ambush: fc.Arbitrary<Ambush> = fc.oneof(
  { weight: 2, arbitrary: ambushOf("half-way", moment) },
  { weight: 1, arbitrary: ambushOf("left behind", moment) },
  { weight: 1, arbitrary: ambushOf("belated", moment) },
  { weight: 1, arbitrary: ambushOf("late seal", moment) },
  { weight: 1, arbitrary: ambushOf("standing still", moment) },
  // A fleet is founded once, at the beginning.
  { weight: 1, arbitrary: ambushOf("two founders", fc.constant(0)) },
);

const anyScenario: fc.Arbitrary<Scenario> = fc.record({
  chance: fc.noShrink(fc.nat(0xffffffff)),
  nodes: fc.constantFrom(3, 3, 5),
  clients: whole(2, 4),
  callers: whole(1, 4),
  resources: whole(1, 9),
  ttlMs: fc.noShrink(whole(80, 1_000)),
  nodeTimeoutMs: fc.noShrink(fc.oneof(whole(8, 60), whole(40, 400))),
  leastMs: fc.noShrink(fc.constantFrom(0.05, 0.1, 0.2, 0.5, 1)),
  jitterMs: fc.noShrink(fc.constantFrom(0.1, 0.5, 1, 3)),
  awayMs: fc.constantFrom(0, 0, 15, 50),
  appendfsync: fc.constantFrom("always", "everysec", "no"),
  clocks: fc.constantFrom("even", "even", "wild"),
  stormMs: whole(500, LONGEST_STORM_MS),
  faults: fc.array(fault, { maxLength: 40, size: "max" }),
  ambushes: fc.array(ambush, { maxLength: 6, size: "max" }),
  wants: fc.constantFrom("anything", "anything", "anything", "anything", "turns"),
});

/**
 * Whether somebody holds a lock for longer than the nodes keep a part for a set that waits: others then have that for
 * several times as long. In half of the worlds in which all wait for their turns nobody does.
 */
export function holdsLong({ chance, wants }: Scenario): boolean {
  return wants !== "turns" || chance % 2 === 0;
}

const turnFaults: readonly FaultKind[] = ["stop client", "crash client"];

/** The world that a scenario becomes where all wait for their turns. */
export function withTurns(scenario: Scenario): Scenario {
  const faults = scenario.faults.filter(({ kind }) => turnFaults.includes(kind));
  const ambushes = scenario.ambushes.filter(({ kind }) => kind === "standing still");
  const { awayMs } = scenario;
  const [ttlMs, nodeTimeoutMs] = [Math.max(300, 8 * awayMs, scenario.ttlMs), Math.max(scenario.nodeTimeoutMs, 4 * awayMs)];
  return { ...scenario, ttlMs, nodeTimeoutMs, resources: 1 + (scenario.resources % 3), clocks: "even", faults, ambushes, wants: "turns" };
}

export const scenarios = anyScenario.map((scenario) => (scenario.wants === "turns" ? withTurns(scenario) : { ...scenario, awayMs: 0 }));

/** The scenario of a seed; with a path, the smaller one to which it shrank. */
export function scenarioOf(seed: number, path?: string): Scenario {
  const [scenario] = fc.sample(scenarios, { seed, numRuns: 1, ...(path === undefined ? {} : { path }) });
  if (scenario === undefined) throw new Error(`no scenario was drawn from seed ${seed}`);
  return scenario;
}
