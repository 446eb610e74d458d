// Runs of many worlds: what the command line asks for, the worker processes that play the worlds, what
// happened in them added up, and the search for the smallest world in which a promise is still broken.
import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import fc from "fast-check";
import { mixed } from "./engine.js";
import { controls, type Rules } from "./world/rules.js";
import { type AmbushKind, ambushKinds, type FaultKind, faultKinds, type Scenario, scenarioOf, scenarios } from "./world/scenario.js";
import { World, type WorldResult } from "./world/world.js";

export interface Asked {
  readonly acquisitions: number;
  readonly limitMs: number;
  /** Decides which worlds there are. */
  readonly seed: number;
  readonly workers: number;
  /** One world; with a path, the smaller one to which it shrank. */
  readonly replay: { readonly seed: number; readonly path: string | undefined } | undefined;
  /** The rules to switch off, one at a time. */
  readonly controls: readonly string[];
}

export const usage = `npm run faults -- --sim [options]
  --acquisitions N    until so many leases were given (1000000, unless --minutes is given)
  --minutes M         for so long
  --seed S            a whole number: which worlds (from the clock)
  --workers W         processes (2)
  --replay SEED       play the world of one seed, or SEED:PATH, and print its trace
  --control NAME      with --replay: with a rule switched off; alone: play until that is found out; "all": each in turn
                      ${Object.keys(controls).join(", ")}`;

const MOST_SEED = 2 ** 31 - 1;

/** Throws an error with a message for the user. */
export function readArguments(args: readonly string[]): Asked {
  const text = { type: "string" } as const;
  const options = { acquisitions: text, minutes: text, seed: text, workers: text, replay: text, control: text };
  const { acquisitions, minutes, seed, workers, replay, control } = parseArgs({ args: [...args], options }).values;
  if (control !== undefined && control !== "all" && !(control in controls))
    throw new RangeError(`--control is one of all, ${Object.keys(controls).join(", ")}; not ${control}`);
  if (replay !== undefined && control === "all") throw new RangeError("--replay plays one world, with one --control at most");
  const [world = "", ...path] = replay?.split(":") ?? [];
  const forEver = Number.POSITIVE_INFINITY;
  return {
    acquisitions: acquisitions === undefined && minutes !== undefined ? forEver : whole("acquisitions", acquisitions, 1_000_000),
    limitMs: minutes === undefined ? forEver : positive("minutes", minutes) * 60_000,
    seed: seed === undefined ? Date.now() % MOST_SEED : seedIn(seed),
    workers: whole("workers", workers, 2),
    replay: replay === undefined ? undefined : { seed: seedIn(world), path: path.length === 0 ? undefined : path.join(":") },
    controls: control === "all" ? Object.keys(controls) : control === undefined ? [] : [control],
  };
}

function seedIn(text: string): number {
  const seed = Number(text);
  if (/^\d+$/.test(text) && seed <= MOST_SEED) return seed;
  throw new RangeError(`a seed is a whole number up to ${MOST_SEED}, not ${text}`);
}

function whole(name: string, text: string | undefined, fallback: number): number {
  const number = text === undefined ? fallback : positive(name, text);
  if (Number.isInteger(number)) return number;
  throw new RangeError(`--${name} must be a whole number, not ${text}`);
}

function positive(name: string, text: string): number {
  const number = Number(text);
  if (number > 0 && Number.isFinite(number)) return number;
  throw new RangeError(`--${name} must be a positive number, not ${text}`);
}

interface Broken {
  readonly seed: number;
  readonly promise: string;
  readonly what: string;
}

export interface Totals {
  worlds: number;
  acquisitions: number;
  secondDeliveries: number;
  readonly faults: Record<FaultKind, number>;
  readonly ambushes: Record<AmbushKind, number>;
  readonly broken: Broken[];
}

export function noTotals(): Totals {
  const faults = Object.fromEntries(faultKinds.map((kind) => [kind, 0])) as Record<FaultKind, number>;
  const ambushes = Object.fromEntries(ambushKinds.map((kind) => [kind, 0])) as Record<AmbushKind, number>;
  return { worlds: 0, acquisitions: 0, secondDeliveries: 0, faults, ambushes, broken: [] };
}

export function count(totals: Totals, seed: number, { violations, ...result }: WorldResult): void {
  merge(totals, { ...result, worlds: 1, broken: violations.map(({ promise, what }) => ({ seed, promise, what })) });
}

function merge(totals: Totals, other: Totals): void {
  totals.worlds += other.worlds;
  totals.acquisitions += other.acquisitions;
  totals.secondDeliveries += other.secondDeliveries;
  for (const kind of faultKinds) totals.faults[kind] += other.faults[kind];
  for (const kind of ambushKinds) totals.ambushes[kind] += other.ambushes[kind];
  totals.broken.push(...other.broken);
}

export function summary(totals: Totals, elapsedMs: number): string {
  const faults = faultKinds.map((kind) => `${kind} ${grouped(totals.faults[kind])}`).join(", ");
  const ambushes = ambushKinds.map((kind) => `${kind} ${grouped(totals.ambushes[kind])}`).join(", ");
  const perSecond = elapsedMs > 0 ? (totals.acquisitions * 1_000) / elapsedMs : 0;
  return [
    `${grouped(totals.worlds)} worlds`,
    `${grouped(totals.acquisitions)} acquisitions`,
    `faults: ${faults} (${grouped(totals.secondDeliveries)} deliveries)`,
    `ambushes: ${ambushes}`,
    `${grouped(totals.broken.length)} violations`,
    `${grouped(perSecond)} acquisitions/s`,
  ].join("; ");
}

export function grouped(number: number): string {
  return Math.round(number)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, " ");
}

const main = fileURLToPath(new URL("./main.js", import.meta.url));

/** The seed of one world of a run. */
export function seedOf(run: number, index: number): number {
  return mixed(run, `world ${index}`) & 0x7fffffff;
}

/**
 * Hands out seeds to worker processes until enough leases were given or a promise is broken. The seed of the run alone
 * decides which worlds there are.
 */
export async function playAll(run: Asked, onProgress: (totals: Totals) => void): Promise<Totals> {
  const totals = noTotals();
  const endsAt = performance.now() + run.limitMs;
  let next = 0;
  const isOver = (): boolean => totals.broken.length > 0 || totals.acquisitions >= run.acquisitions || performance.now() > endsAt;
  const children = Array.from({ length: run.workers }, () => fork(main, ["worker"], { execArgv: ["--max-semi-space-size=64"] }));
  try {
    await Promise.all(
      children.map(async (child) => {
        while (!isOver()) {
          merge(totals, await played(child, seedOf(run.seed, next++)));
          onProgress(totals);
        }
      }),
    );
  } finally {
    for (const child of children) child.kill();
  }
  return totals;
}

function played(child: ChildProcess, seed: number): Promise<Totals> {
  return new Promise((resolve, reject) => {
    const ended = (code: number | null): void => reject(new Error(`a worker ended with ${code} while it played ${seed}`));
    child.once("exit", ended);
    child.once("message", (totals) => {
      child.off("exit", ended);
      resolve(totals as Totals);
    });
    child.send(seed);
  });
}

/** In a worker process: plays the world of each seed that it is sent, and answers with its totals. */
export function work(): void {
  process.on("message", async (seed: number) => {
    const totals = noTotals();
    count(totals, seed, await new World(scenarioOf(seed)).play());
    process.send?.(totals);
  });
  // The parent process is gone.
  process.on("disconnect", () => process.exit());
}

/**
 * Fewer faults, processes, callers and resources, and a shorter storm, as long as a promise stays broken. `isEnough` is
 * asked before every world but the first. undefined: no promise is broken in the world of this seed.
 */
export async function shrink(
  seed: number,
  rules: Rules,
  isEnough: (worlds: number) => boolean,
): Promise<{ readonly scenario: Scenario; readonly path: string; readonly worlds: number } | undefined> {
  let worlds = 0;
  const isKept = fc.asyncProperty(scenarios, async (scenario) => {
    // The rest counts as unbroken, so that the search ends.
    if (worlds > 0 && isEnough(worlds)) return true;
    worlds++;
    return (await new World(scenario, { rules }).play()).violations.length === 0;
  });
  const { counterexample, counterexamplePath } = await fc.check(isKept, { seed, numRuns: 1 });
  if (counterexample === null || counterexamplePath === null) return undefined;
  return { scenario: counterexample[0], path: counterexamplePath, worlds };
}
