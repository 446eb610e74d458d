// `npm run faults -- --sim`: plays worlds until enough leases were given, and judges them. Exit
// code 1 if a promise was broken (with --control: if none was), 2 for arguments that make no sense.
import { type Asked, count, grouped, noTotals, playAll, readArguments, seedOf, shrink, summary, usage, work } from "./runs.js";
import { allRules, controls, type Rules } from "./world/rules.js";
import { scenarioOf } from "./world/scenario.js";
import { World } from "./world/world.js";

/** Without a terminal the progress is a line from time to time. */
const LINE_EVERY_MS = 10_000;
const SHRINK_WITHIN_MS = 60_000;
const LAST_LINES = 150;
/** A control that takes more acquisitions counts as not found. */
const FOUND_WITHIN = 3_000_000;
const COMMAND = "npm run faults -- --sim";

async function run(task: Asked): Promise<number> {
  console.log(`seed ${task.seed}; to repeat: ${COMMAND} --seed ${task.seed}`);
  const beganAt = performance.now();
  let linedAt = beganAt;
  const totals = await playAll(task, (sofar) => {
    const now = performance.now();
    const line = `${Math.round((now - beganAt) / 1_000)} s: ${grouped(sofar.worlds)} worlds, ${grouped(sofar.acquisitions)} acquisitions, ${sofar.broken.length} violations`;
    if (process.stderr.isTTY) process.stderr.write(`\r\x1b[2K${line}`);
    else if (now - linedAt >= LINE_EVERY_MS) {
      linedAt = now;
      console.log(line);
    }
  });
  const elapsedMs = performance.now() - beganAt;
  if (process.stderr.isTTY) process.stderr.write("\r\x1b[2K");
  const [first] = totals.broken;
  if (first !== undefined) await explain(first.seed);
  console.log(summary(totals, elapsedMs));
  return first === undefined ? 0 : 1;
}

/** Shrinks the broken world and shows it. */
async function explain(seed: number): Promise<void> {
  console.log(`broken in the world of seed ${seed}; making it smaller…`);
  const endsAt = performance.now() + SHRINK_WITHIN_MS;
  const shrunk = await shrink(seed, allRules, () => performance.now() > endsAt);
  if (shrunk === undefined) {
    console.log("it was not broken when it was played again: the simulation is not deterministic, which is a defect of its own");
    return;
  }
  await show({ seed, path: shrunk.path }, allRules, LAST_LINES);
  console.log(
    `to repeat: ${COMMAND} --replay ${seed}:${shrunk.path} (as it shrank, in ${shrunk.worlds} worlds), ${COMMAND} --replay ${seed} (as it was)`,
  );
}

/** Prints a world's trace, or its end, and what was broken. */
async function show({ seed, path }: NonNullable<Asked["replay"]>, rules: Rules, lastLines = Number.POSITIVE_INFINITY): Promise<number> {
  const scenario = scenarioOf(seed, path);
  const { trace, violations, acquisitions } = await new World(scenario, { rules, tracing: "traced" }).play();
  const { faults, ambushes, ...rest } = scenario;
  const lines = trace?.lines ?? [];
  console.log(
    Object.entries(rest)
      .map(([name, value]) => `${name} ${value}`)
      .join(", "),
  );
  for (const { kind, atMs, lastsMs, node, client, strength } of [...faults].sort((a, b) => a.atMs - b.atMs))
    console.log(`fault at ${atMs} ms for ${lastsMs} ms: ${kind} (node ${node}, client ${client}, strength ${strength})`);
  for (const { kind, atMs, lastsMs, node, strength } of [...ambushes].sort((a, b) => a.atMs - b.atMs))
    console.log(`ambush from ${atMs} ms on for ${lastsMs} ms: ${kind} (node ${node}, strength ${strength})`);
  if (lines.length > lastLines) console.log(`(${lines.length - lastLines} lines before these)`);
  for (const line of lines.slice(-lastLines)) console.log(line);
  for (const { promise, atMs, what } of violations) console.log(`${atMs.toFixed(3).padStart(11)}  BROKEN  ${promise}: ${what}`);
  console.log(`${lines.length} lines, hash ${trace?.hash}; ${acquisitions} acquisitions; ${violations.length} violations`);
  return violations.length === 0 ? 0 : 1;
}

/** Plays worlds with a rule switched off until a checker finds it out. */
async function find({ controls: names, seed }: Asked): Promise<number> {
  let missed = 0;
  for (const name of names) {
    const totals = noTotals();
    const beganAt = performance.now();
    for (let index = 0; totals.broken.length === 0 && totals.acquisitions < FOUND_WITHIN; index++) {
      const world = seedOf(seed, index);
      count(totals, world, await new World(scenarioOf(world), { rules: rulesOf(name) }).play());
    }
    const [first] = totals.broken;
    const after = `after ${grouped(totals.acquisitions)} acquisitions in ${grouped(totals.worlds)} worlds, ${((performance.now() - beganAt) / 1_000).toFixed(1)} s`;
    console.log(
      first === undefined ? `${name}: NOT found ${after}` : `${name}: found ${after} (seed ${first.seed}, ${first.promise}: ${first.what})`,
    );
    if (first === undefined) missed++;
  }
  return missed === 0 ? 0 : 1;
}

function rulesOf(control: string | undefined): Rules {
  return (control === undefined ? undefined : controls[control]) ?? allRules;
}

function wanted(): Asked | undefined {
  try {
    return readArguments(process.argv.slice(2));
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${usage}`);
    return undefined;
  }
}

async function perform(asked: Asked): Promise<number> {
  if (asked.replay !== undefined) return show(asked.replay, rulesOf(asked.controls[0]));
  return asked.controls.length > 0 ? find(asked) : run(asked);
}

if (process.argv[2] === "worker") work();
else {
  const asked = wanted();
  process.exitCode = asked === undefined ? 2 : await perform(asked);
}
