// What was asked for on the command line, checked.
import { parseArgs } from "node:util";
import type { AppendFsync } from "@palisade/testkit";
import type { RunOptions } from "./run.js";

export type Asked = Omit<RunOptions, "onProgress"> & { readonly json: string | undefined };

export const usage = `npm run faults -- --lock [options]   the lock alone: one resource, many processes, a fleet that breaks
  --processes N      client processes (16)
  --leases K         leases of each, all on one resource (1000)
  --minutes M        no new leases after so long (30)
  --seed S           what to repeat (from the clock)
  --short            a bounded run: 60 leases each, at most 45 s with everything
  --appendfsync F    always (kills keep everything), everysec or no (kills count as losses of memory, too)
  --control          the same with a lock that has neither seals nor quarantine: must be found wanting
  --json FILE        the report and the whole history as JSON`;

const fsyncs = ["always", "everysec", "no"];

/** Throws an error for people if it makes no sense. */
export function readArguments(args: readonly string[]): Asked {
  const text = { type: "string" } as const;
  const flag = { type: "boolean", default: false } as const;
  const options = { processes: text, leases: text, minutes: text, seed: text, appendfsync: text, json: text, short: flag, control: flag };
  const { values } = parseArgs({ args: [...args], options });
  const appendfsync = values.appendfsync ?? "always";
  if (!fsyncs.includes(appendfsync)) throw new RangeError(`--appendfsync is one of ${fsyncs.join(", ")}, not ${appendfsync}`);
  return {
    seed: values.seed ?? Date.now().toString(36),
    kind: values.control ? "naive" : "palisade",
    processes: positive("processes", values.processes, 16),
    leases: positive("leases", values.leases, values.short ? 60 : 1_000),
    limitMs: positive("minutes", values.minutes, values.short ? 0.45 : 30) * 60_000,
    appendfsync: appendfsync as AppendFsync,
    json: values.json,
  };
}

function positive(name: string, value: string | undefined, fallback: number): number {
  const number = value === undefined ? fallback : Number(value);
  const isFit = number > 0 && Number.isFinite(number) && (name === "minutes" || Number.isInteger(number));
  if (!isFit) throw new RangeError(`--${name} must be a positive number, not ${value}`);
  return number;
}
