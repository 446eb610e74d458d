// Reads a command line. Throws an error with a sentence for people if it makes no sense.
import { existsSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { parseArgs } from "node:util";

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

/** From the clock if none was given. */
export function seedOf({ text }: Values): string {
  return text.seed ?? Date.now().toString(36);
}
