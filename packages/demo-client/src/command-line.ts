// The arguments, checked before anything is started. A mistake is one sentence.
import { parseArgs } from "node:util";

export interface DemoOptions {
  /** Names of scenarios, in the order in which they run. */
  readonly scenarios: readonly string[];
  readonly mode: "play" | "list" | "help";
  readonly json: boolean;
  readonly htmlFile: string | undefined;
  /** How fast it is shown; undefined: as a reader at a terminal needs it. */
  readonly speed: number | undefined;
  readonly ttlMs: number;
  readonly redisUrls: readonly string[] | undefined;
  readonly gateway: { readonly url: string; readonly apiKey: string | undefined } | undefined;
}

export class UsageError extends Error {
  override readonly name = "UsageError";
}

const options = {
  list: { type: "boolean" },
  help: { type: "boolean", short: "h" },
  json: { type: "boolean" },
  html: { type: "string" },
  speed: { type: "string" },
  ttl: { type: "string" },
  redis: { type: "string" },
  gateway: { type: "string" },
  "api-key": { type: "string" },
} as const;

export function usage(names: readonly string[]): string {
  return `demo [scenario | all] [options]

  scenario         ${names.join(", ")}
                   ${names[0]} when none is named; all runs every one
  --list           what each scenario is about
  --ttl MS         how long leases last (1000)
  --speed N        2 gives the reader half the time between steps, 0 none; leases last as long as --ttl says
  --html FILE      also draw the run as a picture, one file to open in a browser
  --json           one JSON object per line, nothing else
  --redis URLS     the lock's nodes, separated by commas, in place of five started here
  --gateway URL    a gateway that runs already; needs --redis, the nodes with which it checks tokens
  --api-key KEY    for that gateway; also read from GATEWAY_KEY
  --help           this text

With npm, options come after two dashes: npm run demo -- all --html demo.html`;
}

/** Throws UsageError. */
export function readCommandLine(args: readonly string[], names: readonly string[]): DemoOptions {
  const { values, positionals } = parsed(args);
  const wanted = positionals.length === 0 ? names.slice(0, 1) : positionals;
  const unknown = wanted.find((name) => name !== "all" && !names.includes(name));
  if (unknown !== undefined)
    throw new UsageError(`There is no scenario ${JSON.stringify(unknown)}; there are ${names.join(", ")}, and all.`);
  const redisUrls = values.redis?.split(",").map((url) => addressOf("--redis", url, ["redis:", "rediss:"]));
  return {
    mode: values.help === true ? "help" : values.list === true ? "list" : "play",
    scenarios: wanted.includes("all") ? names : [...new Set(wanted)],
    json: values.json === true,
    htmlFile: values.html,
    speed: values.speed === undefined ? undefined : numberOf("--speed", values.speed, speedRange),
    ttlMs: values.ttl === undefined ? 1_000 : numberOf("--ttl", values.ttl, ttlRange),
    redisUrls,
    gateway: gatewayOf(values.gateway, values["api-key"], redisUrls),
  };
}

type Values = ReturnType<typeof parseArgs<{ options: typeof options; allowPositionals: true }>>;

function parsed(args: readonly string[]): Values {
  try {
    return parseArgs({ args: [...joined(args)], options, allowPositionals: true });
  } catch (error) {
    const [sentence = ""] = (error as Error).message.split(/\. (?=To specify)/);
    throw new UsageError(`${sentence.replace(/\.$/, "")}. --help lists what there is.`);
  }
}

/** "--ttl -5" becomes "--ttl=-5", so that the message is about the number. */
function* joined(args: readonly string[]): Generator<string> {
  for (let index = 0; index < args.length; index += 1) {
    const [arg = "", next = ""] = args.slice(index, index + 2);
    const isNegative = /^--(ttl|speed)$/.test(arg) && /^-[\d.]/.test(next);
    yield isNegative ? `${arg}=${next}` : arg;
    if (isNegative) index += 1;
  }
}

function gatewayOf(url: string | undefined, apiKey: string | undefined, redisUrls: readonly string[] | undefined): DemoOptions["gateway"] {
  if (url === undefined) {
    if (apiKey !== undefined) throw new UsageError("--api-key is for a gateway that runs already: name it with --gateway.");
    return undefined;
  }
  if (redisUrls === undefined) throw new UsageError("--gateway needs --redis: the tokens must come from the nodes that this gateway asks.");
  return { url: addressOf("--gateway", url, ["http:", "https:"]), apiKey: apiKey ?? process.env.GATEWAY_KEY };
}

function addressOf(option: string, text: string, protocols: readonly string[]): string {
  const trimmed = text.trim();
  if (URL.canParse(trimmed) && protocols.includes(new URL(trimmed).protocol)) return trimmed;
  throw new UsageError(`${option} takes ${protocols[0]}//… addresses, and ${JSON.stringify(text)} is none.`);
}

interface Range {
  readonly kind: "number" | "whole number";
  readonly from: number;
  readonly to: number;
}

const speedRange: Range = { kind: "number", from: 0, to: 1_000 };
const ttlRange: Range = { kind: "whole number", from: 200, to: 30_000 };

function numberOf(option: string, text: string, { kind, from, to }: Range): number {
  const value = Number(text);
  const isOne = kind === "number" ? /^\d+(\.\d+)?$/.test(text) : /^\d+$/.test(text);
  if (isOne && value >= from && value <= to) return value;
  throw new UsageError(`${option} takes a ${kind} from ${from} to ${to}, not ${JSON.stringify(text)}.`);
}
