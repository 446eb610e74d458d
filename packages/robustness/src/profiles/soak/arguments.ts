// What was asked for on the command line, checked.
import { parseArgs } from "node:util";
import { type Leak, leaks } from "./client-words.js";

export interface Asked {
  readonly minutes: number;
  readonly perSecond: number;
  readonly seed: string;
  readonly clients: number;
  readonly svg: string | undefined;
  readonly json: string | undefined;
  readonly leaks: readonly Leak[];
  readonly from: string | undefined;
}

export const usage = `npm run soak -- [options]
  --minutes M   how long (30)
  --rate R      operations per second of all clients together, as far as they can (100)
  --clients N   client processes (4)
  --seed S      what to draw the operations from (from the clock)
  --svg FILE    the picture
  --json FILE   one JSON object per line: what was asked, a row of values every few seconds as they come, the verdicts
  --from FILE   judges and draws again what --json of an earlier run has written
  --leak KINDS  the control: client 1 leaks with every operation, some of ${leaks.join(",")}. It must be found`;

/** Throws an error for people if it makes no sense. */
export function readArguments(args: readonly string[], now: () => number): Asked {
  const text = { type: "string" } as const;
  const options = { minutes: text, rate: text, clients: text, seed: text, svg: text, json: text, leak: text, from: text };
  const { values } = parseArgs({ args: [...args], options });
  return {
    minutes: positive("minutes", values.minutes, 30),
    perSecond: positive("rate", values.rate, 100),
    clients: clients(values.clients),
    seed: values.seed ?? now().toString(36),
    svg: values.svg,
    json: values.json,
    leaks: leaksIn(values.leak),
    from: values.from,
  };
}

function positive(name: string, value: string | undefined, fallback: number): number {
  const number = value === undefined ? fallback : Number(value);
  if (!(number > 0 && Number.isFinite(number))) throw new RangeError(`--${name} must be a positive number, not ${value}`);
  return number;
}

/** One is stopped now and then, and one never. */
function clients(value: string | undefined): number {
  const number = positive("clients", value, 4);
  if (!Number.isInteger(number) || number < 2 || number > 64) throw new RangeError(`--clients must be from 2 to 64, not ${value}`);
  return number;
}

function leaksIn(value: string | undefined): readonly Leak[] {
  return (value?.split(",") ?? []).map((name) => {
    const known = leaks.find((leak) => leak === name);
    if (known === undefined) throw new RangeError(`--leak takes ${leaks.join(", ")}, not ${name}`);
    return known;
  });
}
