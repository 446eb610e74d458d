// `npm run faults -- --sim`: plays worlds until enough leases were given, and judges them. Exit
// code 1 if a promise was broken (with --control: if none was), 2 for arguments that make no sense.
import { writeFileSync } from "node:fs";
import { type Controls, type Replay, type Run, readArguments, type Task, usage } from "./arguments.js";
import { shrink } from "./shrink.js";
import { count, grouped, noTotals, summary } from "./totals.js";
import { playAll, seedOf } from "./workers.js";
import { controls } from "./world/controls.js";
import { allRules, type Rules } from "./world/rules.js";
import { scenarioOf } from "./world/scenario.js";
import { World } from "./world/world.js";

/** Without a terminal the progress is a line from time to time. */
const LINE_EVERY_MS = 10_000;
const SHRINK_WITHIN_MS = 60_000;
const LAST_LINES = 150;
/** A control that takes more acquisitions counts as not found. */
const FOUND_WITHIN = 3_000_000;
const COMMAND = "npm run faults -- --sim";

async function run(task: Run): Promise<number> {
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
  if (task.json !== undefined) writeFileSync(task.json, `${JSON.stringify({ asked: task, elapsedMs, ...totals }, null, 2)}\n`);
  console.log(summary(totals, elapsedMs));
  return first === undefined ? 0 : 1;
}

/** Shrinks the broken world and shows it. */
async function explain(seed: number): Promise<void> {
  console.log(`broken in the world of seed ${seed}; making it smaller…`);
  const endsAt = performance.now() + SHRINK_WITHIN_MS;
  const shrunk = await shrink(seed, { rules: allRules, isEnough: () => performance.now() > endsAt });
  if (shrunk === undefined) {
    console.log("it was not broken when it was played again: the simulation is not deterministic, which is a defect of its own");
    return;
  }
  await show({ what: "replay", seed, path: shrunk.path, control: undefined }, LAST_LINES);
  console.log(
    `to repeat: ${COMMAND} --replay ${seed}:${shrunk.path} (as it shrank, in ${shrunk.worlds} worlds), ${COMMAND} --replay ${seed} (as it was)`,
  );
}

/** Prints a world's trace, or its end, and what was broken. */
async function show({ seed, path, control }: Replay, lastLines: number): Promise<number> {
  const rules = rulesOf(control);
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
async function find({ names, seed }: Controls): Promise<number> {
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

function perform(task: Task): Promise<number> {
  if (task.what === "run") return run(task);
  return task.what === "replay" ? show(task, Number.POSITIVE_INFINITY) : find(task);
}

function wanted(): Task | undefined {
  try {
    return readArguments(process.argv.slice(2));
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${usage}`);
    return undefined;
  }
}

const task = wanted();
process.exitCode = task === undefined ? 2 : await perform(task);
