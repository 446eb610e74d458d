// What was asked for on the command line, checked.
import { parseArgs } from "node:util";
import type { RunOptions } from "./run.js";

export type Asked = Omit<RunOptions, "onProgress"> & { readonly json: string | undefined; readonly html: string | undefined };

export const usage = `npm run faults -- [options]          the whole system: clients, lock, gateways, Postgres
  --minutes M        faults for so long (5)
  --seed S           what to repeat (from the clock)
  --clients N        client processes (10)
  --short            about two minutes with everything
  --control          the same without the fence: must be found wanting
  --json FILE        the report and the whole history as JSON
  --html FILE        the report as a page with a timeline
npm run faults -- --lock [options]   the lock alone; --lock --help shows its options
npm run faults -- --sim [options]    the lock's code in a simulated world`;

const SHORT_MINUTES = 1.5;

/** Throws an error for people if it makes no sense. */
export function readArguments(args: readonly string[]): Asked | "help" {
  const text = { type: "string" } as const;
  const flag = { type: "boolean", default: false } as const;
  const options = { minutes: text, seed: text, clients: text, json: text, html: text, short: flag, control: flag, help: flag };
  const { values } = parseArgs({ args: [...args], options });
  if (values.help) return "help";
  const clients = positive("clients", values.clients, 10);
  if (!Number.isInteger(clients) || clients < 2 || clients > 64)
    throw new RangeError(`--clients is a whole number from 2 to 64, not ${values.clients}`);
  if (values.short && values.minutes !== undefined)
    throw new RangeError("--short and --minutes are two answers to one question: give one of them.");
  return {
    seed: values.seed ?? Date.now().toString(36),
    mode: values.control ? "unfenced" : "fenced",
    clients,
    durationMs: positive("minutes", values.minutes, values.short ? SHORT_MINUTES : 5) * 60_000,
    json: values.json,
    html: values.html,
  };
}

function positive(name: string, value: string | undefined, fallback: number): number {
  const number = value === undefined ? fallback : Number(value);
  if (!(number > 0 && Number.isFinite(number))) throw new RangeError(`--${name} must be a positive number, not ${value}`);
  return number;
}
