// The arguments, checked before anything is started. A mistake is one sentence.
import { numberOf, readArguments, UsageError } from "@palisade/testkit";

export interface DemoOptions {
  /** Names of scenarios, in the order in which they run. */
  readonly scenarios: readonly string[];
  readonly mode: "play" | "list" | "help";
  readonly json: boolean;
  readonly htmlFile: string | undefined;
  /** How fast it is shown; undefined: as a reader at a terminal needs it. */
  readonly speed: number | undefined;
  readonly ttlMs: number;
}

export function usage(names: readonly string[]): string {
  return `demo [scenario | all] [options]

  scenario         ${names.join(", ")}
                   ${names[0]} when none is named; all runs every one
  --list           what each scenario is about
  --ttl MS         how long leases last (1000)
  --speed N        2 gives the reader half the time between steps, 0 none; leases last as long as --ttl says
  --html FILE      also draw the run as a picture, one file to open in a browser
  --json           one JSON object per line, nothing else
  --help           this text

With npm, options come after two dashes: npm run demo -- all --html demo.html`;
}

/** Throws UsageError. */
export function readCommandLine(args: readonly string[], names: readonly string[]): DemoOptions {
  const { values, positionals } = readArguments({
    args: [...args],
    allowPositionals: true,
    options: {
      list: { type: "boolean" },
      help: { type: "boolean", short: "h" },
      json: { type: "boolean" },
      html: { type: "string" },
      speed: { type: "string" },
      ttl: { type: "string" },
    },
  });
  const wanted = positionals.length === 0 ? names.slice(0, 1) : positionals;
  const unknown = wanted.find((name) => name !== "all" && !names.includes(name));
  if (unknown !== undefined)
    throw new UsageError(`There is no scenario ${JSON.stringify(unknown)}; there are ${names.join(", ")}, and all.`);
  return {
    mode: values.help === true ? "help" : values.list === true ? "list" : "play",
    scenarios: wanted.includes("all") ? names : [...new Set(wanted)],
    json: values.json === true,
    htmlFile: values.html,
    speed: numberOf("--speed", values.speed, { least: 0, most: 1_000, isWhole: false }),
    ttlMs: numberOf("--ttl", values.ttl, { least: 200, most: 30_000 }) ?? 1_000,
  };
}
