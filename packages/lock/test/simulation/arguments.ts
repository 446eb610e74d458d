// Reads and checks the command line.
import { parseArgs } from "node:util";
import { controls } from "./world/controls.js";

export interface Run {
  readonly what: "run";
  readonly acquisitions: number;
  readonly limitMs: number;
  readonly seed: number;
  readonly workers: number;
  readonly json: string | undefined;
}

export interface Replay {
  readonly what: "replay";
  readonly seed: number;
  /** Path to the smaller world that the seed's world shrank to. */
  readonly path: string | undefined;
  readonly control: string | undefined;
}

export interface Controls {
  readonly what: "controls";
  readonly names: readonly string[];
  readonly seed: number;
}

export type Task = Run | Replay | Controls;

export const usage = `npm run faults -- --sim [options]
  --acquisitions N    until so many leases were given (1000000, unless --minutes is given)
  --minutes M         for so long
  --seed S            a whole number: which worlds (from the clock)
  --workers W         processes (2)
  --json FILE         the result as JSON
  --replay SEED       play the world of one seed, or SEED:PATH, and print its trace
  --control NAME      with --replay: with a rule switched off; alone: play until that is found out; "all": each in turn
                      ${Object.keys(controls).join(", ")}`;

const MOST_SEED = 2 ** 31 - 1;

/** Throws an error with a message for the user. */
export function readArguments(args: readonly string[]): Task {
  const text = { type: "string" } as const;
  const options = {
    acquisitions: text,
    minutes: text,
    seed: text,
    workers: text,
    json: text,
    replay: text,
    control: text,
  };
  const { values } = parseArgs({ args: [...args], options });
  const seed = values.seed === undefined ? Date.now() % MOST_SEED : seedIn(values.seed);
  const control = values.control;
  if (control !== undefined && control !== "all" && !(control in controls))
    throw new RangeError(`--control is one of all, ${Object.keys(controls).join(", ")}; not ${control}`);
  if (values.replay !== undefined) {
    const [world = "", ...path] = values.replay.split(":");
    if (control === "all") throw new RangeError("--replay plays one world, with one --control at most");
    return {
      what: "replay",
      seed: seedIn(world),
      path: path.length === 0 ? undefined : path.join(":"),
      control,
    };
  }
  if (control !== undefined) return { what: "controls", names: control === "all" ? Object.keys(controls) : [control], seed };
  return {
    what: "run",
    acquisitions:
      values.acquisitions === undefined && values.minutes !== undefined
        ? Number.POSITIVE_INFINITY
        : whole("acquisitions", values.acquisitions, 1_000_000),
    limitMs: values.minutes === undefined ? Number.POSITIVE_INFINITY : positive("minutes", values.minutes) * 60_000,
    seed,
    workers: whole("workers", values.workers, 2),
    json: values.json,
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
