// What the programs of this package share: arguments read or refused, progress, the exit code.
import { existsSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { parseArgs } from "node:util";

export interface Command<Asked> {
  readonly usage: string;
  readonly texts: readonly string[];
  readonly flags: readonly string[];
  /** Throws an error for people if it makes no sense. */
  read(values: Values): Asked;
  /** The exit code: 0 as promised, 1 not. */
  perform(asked: Asked): Promise<number>;
}

/** The exit code: 2 if the arguments make no sense. */
export async function runCommand<Asked>(command: Command<Asked>, args: readonly string[]): Promise<number> {
  let asked: Asked;
  try {
    const values = readValues(args, command.texts, command.flags);
    if (values.has("help")) {
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

export function progressEnded(): void {
  progress("");
}

// Reads a command line. Throws an error with a sentence for people if it makes no sense.
export interface Values {
  readonly text: Readonly<Record<string, string | undefined>>;
  has(flag: string): boolean;
}

/** Where the report of a run goes. */
export interface ReportFiles {
  readonly json: string | undefined;
  readonly svg: string | undefined;
  readonly html: string | undefined;
}

export const REPORT_USAGE = `  --svg FILE         the report as a picture
  --html FILE        the picture in a page`;

/** Every command also knows --help, and --json, --svg and --html for its report. */
export function readValues(args: readonly string[], texts: readonly string[], flags: readonly string[]): Values {
  const all = [...texts, "json", "svg", "html"].map((name) => [name, { type: "string" as const }] as const);
  const options = {
    ...Object.fromEntries(all),
    ...Object.fromEntries([...flags, "help"].map((name) => [name, { type: "boolean" as const }])),
  };
  const { values } = parseArgs({ args: [...args], options });
  return {
    text: Object.fromEntries(Object.entries(values).filter((entry): entry is [string, string] => typeof entry[1] === "string")),
    has: (flag) => values[flag] === true,
  };
}

/** Refuses a file that could not be written when the run is over. */
export function reportFiles({ text }: Values): ReportFiles {
  for (const name of ["json", "svg", "html"]) {
    const folder = dirname(resolve(text[name] ?? "."));
    if (!existsSync(folder)) throw new RangeError(`--${name} ${text[name]}: there is no folder ${folder}`);
  }
  return { json: text.json, svg: text.svg, html: text.html };
}

export function positive({ text }: Values, name: string, fallback: number): number {
  const value = text[name];
  const number = value === undefined ? fallback : Number(value);
  if (!(number > 0 && Number.isFinite(number))) throw new RangeError(`--${name} must be a positive number, not ${value}`);
  return number;
}

export function wholeNumber(
  values: Values,
  name: string,
  { fallback, least, most }: { fallback: number; least: number; most: number },
): number {
  const number = positive(values, name, fallback);
  if (!Number.isInteger(number) || number < least || number > most)
    throw new RangeError(`--${name} is a whole number from ${least} to ${most}, not ${values.text[name]}`);
  return number;
}

export function oneOf<T extends string>(name: string, value: string, known: readonly T[]): T {
  const found = known.find((one) => one === value);
  if (found === undefined) throw new RangeError(`--${name} is one of ${known.join(", ")}, not ${value}`);
  return found;
}

/** Whether a short run is asked for; it decides by itself what `other` would. */
export function shortOr(values: Values, other: string): boolean {
  const isShort = values.has("short");
  if (isShort && values.text[other] !== undefined)
    throw new RangeError(`--short and --${other} are two answers to one question: give one of them.`);
  return isShort;
}

/** From the clock if none was given. */
export function seedOf({ text }: Values): string {
  return text.seed ?? Date.now().toString(36);
}
