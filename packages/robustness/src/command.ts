// What the programs of this package share: arguments read or refused, progress, whole numbers.
import { existsSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { numberOf, readArguments } from "@palisade/testkit";

export type Values = Readonly<Record<string, string | boolean | undefined>>;

/**
 * Performs what is asked for; `ask` throws an error for people if it makes no sense, and answers the exit code. The
 * options that `usage` lists are those that are known: `--name X` has a value, `--name` none.
 */
export async function runCommand(usage: string, args: readonly string[], ask: (values: Values) => () => Promise<number>): Promise<number> {
  let perform: () => Promise<number>;
  try {
    const values = readValues(args, usage);
    if (values.help === true) {
      console.log(usage);
      return 0;
    }
    perform = ask(values);
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${usage}`);
    return 2;
  }
  return await perform();
}

export function readValues(args: readonly string[], usage: string): Values {
  const listed = [...usage.matchAll(/^ {2}--([a-z]+)( [A-Z]+)?/gm)];
  const options = listed.map(([, name, value]) => [name, { type: value === undefined ? "boolean" : "string" }] as const);
  const { values } = readArguments({ args: [...args], options: { ...Object.fromEntries(options), help: { type: "boolean" as const } } });
  return values as Values;
}

export function textOf(values: Values, name: string): string | undefined {
  const value = values[name];
  return typeof value === "string" ? value : undefined;
}

/** Refuses a file that could not be written when the run is over. */
export function fileOf(values: Values, name: string): string | undefined {
  const file = textOf(values, name);
  const folder = dirname(resolve(file ?? "."));
  if (!existsSync(folder)) throw new RangeError(`--${name} ${file}: there is no folder ${folder}`);
  return file;
}

interface Range {
  readonly fallback: number;
  readonly least: number;
  readonly most: number;
  readonly isWhole?: boolean;
}

export function numberFor(values: Values, name: string, { fallback, ...range }: Range): number {
  return numberOf(`--${name}`, textOf(values, name), range) ?? fallback;
}

export function minutesOf(values: Values, fallback: number): number {
  return numberFor(values, "minutes", { fallback, least: 0.01, most: 10_000, isWhole: false });
}

/** Whether a short run is asked for; it decides by itself what `other` would. */
export function shortOr(values: Values, other: string): boolean {
  if (values.short === true && values[other] !== undefined)
    throw new RangeError(`--short and --${other} are two answers to one question: give one of them.`);
  return values.short === true;
}

/** From the clock if none was given. */
export function seedOf(values: Values): string {
  return textOf(values, "seed") ?? Date.now().toString(36);
}

/** On a terminal one line that is overwritten, by an empty one in the end; elsewhere a line every so often. */
export function progressLines(everyMs: number): (line: string) => void {
  let nextAt = performance.now() + everyMs;
  return (line) => {
    if (process.stderr.isTTY) process.stderr.write(`\r\x1b[2K${line}`);
    else if (line !== "" && performance.now() >= nextAt) {
      nextAt += everyMs;
      console.log(line);
    }
  };
}

/** 12345.6 → "12 346". */
export function whole(value: number): string {
  return Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, " ");
}
