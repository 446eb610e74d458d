// The command line, read and judged before anything starts.
import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { numberOf, readArguments } from "@palisade/testkit";
import { isWithin, type Part, type Scope } from "./measure/part.js";
import { table } from "./measure/results.js";

export interface Asked {
  readonly scope: Scope;
  readonly parts: readonly string[];
  readonly leftOut: readonly string[];
  readonly rounds: number | undefined;
  readonly seconds: number | undefined;
  readonly beside: string | undefined;
  readonly json: string | undefined;
  readonly write: boolean;
  /** Beside other work: a thread that takes a core. */
  readonly busy: boolean;
  /** Results of an earlier run, shown instead of measuring. */
  readonly from: string | undefined;
}

const scopes: readonly Scope[] = ["quick", "usual", "all"];

/** Throws an error for people if it makes no sense; undefined if only help is wanted. */
export function readCommandLine(args: readonly string[], known: readonly Part[]): Asked | undefined {
  const text = { type: "string" } as const;
  const flag = { type: "boolean" } as const;
  const { values, positionals } = readArguments({
    args: [...args],
    allowPositionals: true,
    options: { json: text, from: text, beside: text, rounds: text, seconds: text, write: flag, busy: flag, help: flag },
  });
  if (values.help === true) return undefined;
  const { scope, parts } = readParts(positionals, known);
  const { json, from, beside } = values;
  if (json !== undefined && !existsSync(dirname(resolve(json)))) throw new RangeError(`--json ${json}: there is no folder for it`);
  if (from !== undefined && !existsSync(from)) throw new RangeError(`--from ${from}: there is no such file`);
  if (from !== undefined && positionals.length > 0) throw new RangeError("--from shows an earlier run: nothing is measured");
  if (beside !== undefined && !existsSync(join(beside, "packages", "lock", "dist", "index.js")))
    throw new RangeError(`--beside ${beside}: there is no built checkout (npm run build there)`);
  return {
    scope,
    parts,
    json,
    from,
    write: values.write === true,
    busy: values.busy === true,
    leftOut: known.map(({ name }) => name).filter((name) => !parts.includes(name)),
    rounds: numberOf("--rounds", values.rounds, { least: 1, most: 1_000 }),
    seconds: numberOf("--seconds", values.seconds, { least: 0.001, most: 3_600, isWhole: false }),
    beside: beside === undefined ? undefined : resolve(beside),
  };
}

function readParts(names: readonly string[], known: readonly Part[]): { scope: Scope; parts: readonly string[] } {
  const [first = "all"] = names;
  const scope = scopes.find((name) => name === first);
  if (scope !== undefined) {
    if (names.length > 1) throw new RangeError(`${scope} is a set of parts: name it alone`);
    return { scope, parts: known.filter(({ from }) => isWithin(scope, from)).map(({ name }) => name) };
  }
  const unknown = names.filter((name) => !known.some((part) => part.name === name));
  if (unknown.length > 0)
    throw new RangeError(`no part is called ${unknown.join(", ")}; there are ${[...scopes, ...known.map(({ name }) => name)].join(", ")}`);
  return { scope: "usual", parts: names };
}

export function usage(known: readonly Part[]): string {
  const rows = known.map(({ name, from, what }) => [name, from, what]);
  const left = "left" as const;
  return `npm run bench [-- quick | usual | all | PART…] [OPTIONS]

  quick              the headlines, in a minute
  usual              what docs/performance.md shows
  all                everything; the default
  --json FILE        the results
  --write            docs/performance.md and its results
  --from FILE        no measurement: the results of an earlier run
  --beside DIR       the lock and the gateway of another built checkout take part as well
  --busy             one core is taken all the while
  --rounds N         instead of those of the scope
  --seconds S        of one round of one contestant

${table(
  [
    { title: "part", align: left },
    { title: "from", align: left },
    { title: "compares", align: left },
  ],
  rows,
)}`;
}
