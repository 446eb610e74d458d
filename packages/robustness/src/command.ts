// What the programs of this package share: arguments read or refused, progress, the exit code.
import { existsSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { parseArgs } from "node:util";

export interface Command<Asked> {
  /** The options that it lists are those that are known: `--name X` has a value, `--name` none. */
  readonly usage: string;
  /** Throws an error for people if it makes no sense. */
  read(values: Values): Asked;
  /** The exit code: 0 as promised, 1 not. */
  perform(asked: Asked): Promise<number>;
}

export type Values = Readonly<Record<string, string | boolean | undefined>>;

/** The exit code: 2 if the arguments make no sense. */
export async function runCommand<Asked>(command: Command<Asked>, args: readonly string[]): Promise<number> {
  let asked: Asked;
  try {
    const values = readValues(args, command.usage);
    if (values.help === true) {
      console.log(command.usage);
      return 0;
    }
    asked = command.read(values);
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${command.usage}`);
    return 2;
  }
  return command.perform(asked);
}

export function readValues(args: readonly string[], usage: string): Values {
  const listed = [...usage.matchAll(/^ {2}--([a-z]+)( [A-Z]+)?/gm)];
  const options = listed.map(([, name, value]) => [name, { type: value === undefined ? "boolean" : "string" }] as const);
  const { values } = parseArgs({ args: [...args], options: { ...Object.fromEntries(options), help: { type: "boolean" as const } } });
  return values as Values;
}

/** On a terminal one line that is overwritten; elsewhere a line every so often. */
export function progressLines(everyMs: number): (elapsedMs: number, line: string) => void {
  let nextAt = everyMs;
  return (elapsedMs, line) => {
    progress(line);
    if (process.stderr.isTTY || elapsedMs < nextAt) return;
    nextAt = elapsedMs + everyMs;
    console.log(line);
  };
}

/** Shown on a terminal only, and overwritten by the next line. */
export function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[2K${text}`);
}

/** Where the report of a run goes. */
export interface ReportFiles {
  readonly json: string | undefined;
  readonly svg: string | undefined;
}

/** Refuses a file that could not be written when the run is over. */
export function reportFiles(values: Values): ReportFiles {
  const [json, svg] = ["json", "svg"].map((name) => {
    const file = textOf(values, name);
    const folder = dirname(resolve(file ?? "."));
    if (!existsSync(folder)) throw new RangeError(`--${name} ${file}: there is no folder ${folder}`);
    return file;
  });
  return { json, svg };
}

export function textOf(values: Values, name: string): string | undefined {
  const value = values[name];
  return typeof value === "string" ? value : undefined;
}

export function positive(values: Values, name: string, fallback: number): number {
  const value = textOf(values, name);
  const number = value === undefined ? fallback : Number(value);
  if (!(number > 0 && Number.isFinite(number))) throw new RangeError(`--${name} must be a positive number, not ${value}`);
  return number;
}

interface Whole {
  readonly fallback: number;
  readonly least: number;
  readonly most: number;
}

export function wholeNumber(values: Values, name: string, { fallback, least, most }: Whole): number {
  const number = positive(values, name, fallback);
  if (!Number.isInteger(number) || number < least || number > most)
    throw new RangeError(`--${name} is a whole number from ${least} to ${most}, not ${values[name]}`);
  return number;
}

export function oneOf<T extends string>(name: string, value: string, known: readonly T[]): T {
  const found = known.find((one) => one === value);
  if (found === undefined) throw new RangeError(`--${name} is one of ${known.join(", ")}, not ${value}`);
  return found;
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
