// What the user asked for, read from the arguments and checked before anything is started. A mistake is one sentence. Decides no default of a story but the first one.
import { parseArgs } from "node:util";

export interface Wish {
  /** Names, or none: for the help and the list. */
  readonly scenarios: readonly string[];
  readonly mode: "play" | "list" | "help";
  readonly json: boolean;
  readonly htmlFile: string | undefined;
  /** How fast it is told; undefined: as the audience needs it. */
  readonly speed: number | undefined;
  readonly ttlMs: number;
  readonly redisUrls: readonly string[] | undefined;
  readonly gateway: { readonly url: string; readonly apiKey: string | undefined } | undefined;
}

export class Misunderstood extends Error {
  override readonly name = "Misunderstood";
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
                   ${names[0]} when none is named; all tells every one
  --list           what each scenario is about
  --ttl MS         how long leases last (1000)
  --speed N        2 tells it twice as fast to the reader, 0 does not wait for readers at all; leases last as long as they last
  --html FILE      also draw the run as a picture, one file to open in a browser
  --json           one JSON object per line, nothing else
  --redis URLS     the lock's nodes, separated by commas, in place of five started here
  --gateway URL    a gateway that runs already; needs --redis, because it checks tokens with the nodes that issued them
  --api-key KEY    for that gateway; also read from GATEWAY_KEY
  --help           this text

With npm, options come after two dashes: npm run demo -- all --html demo.html`;
}

/** Throws Misunderstood. */
export function readCommandLine(args: readonly string[], names: readonly string[]): Wish {
  const { values, positionals } = parsed(args);
  const wanted = positionals.length === 0 ? names.slice(0, 1) : positionals;
  const unknown = wanted.find((name) => name !== "all" && !names.includes(name));
  if (unknown !== undefined)
    throw new Misunderstood(`There is no scenario ${JSON.stringify(unknown)}; there are ${names.join(", ")}, and all.`);
  const redisUrls = values.redis?.split(",").map((url) => addressOf("--redis", url, ["redis:", "rediss:"]));
  return {
    mode: values.help === true ? "help" : values.list === true ? "list" : "play",
    scenarios: wanted.includes("all") ? names : [...new Set(wanted)],
    json: values.json === true,
    htmlFile: values.html,
    speed: values.speed === undefined ? undefined : numberOf("--speed", values.speed, { kind: "number", from: 0, to: 1_000 }),
    ttlMs: values.ttl === undefined ? 1_000 : numberOf("--ttl", values.ttl, { kind: "whole number", from: 200, to: 30_000 }),
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
    throw new Misunderstood(`${sentence.replace(/\.$/, "")}. --help lists what there is.`);
  }
}

/** "--ttl -5" is one thing, and wrong for its number and not for its dash. */
function* joined(args: readonly string[]): Generator<string> {
  for (let index = 0; index < args.length; index += 1) {
    const [arg = "", next = ""] = args.slice(index, index + 2);
    const isNegative = /^--(ttl|speed)$/.test(arg) && /^-[\d.]/.test(next);
    yield isNegative ? `${arg}=${next}` : arg;
    if (isNegative) index += 1;
  }
}

function gatewayOf(url: string | undefined, apiKey: string | undefined, redisUrls: readonly string[] | undefined): Wish["gateway"] {
  if (url === undefined) {
    if (apiKey !== undefined) throw new Misunderstood("--api-key is for a gateway that runs already: name it with --gateway.");
    return undefined;
  }
  if (redisUrls === undefined)
    throw new Misunderstood("--gateway needs --redis: the tokens must come from the nodes that this gateway asks.");
  return { url: addressOf("--gateway", url, ["http:", "https:"]), apiKey: apiKey ?? process.env.GATEWAY_KEY };
}

function addressOf(option: string, text: string, protocols: readonly string[]): string {
  const trimmed = text.trim();
  if (URL.canParse(trimmed) && protocols.includes(new URL(trimmed).protocol)) return trimmed;
  throw new Misunderstood(`${option} takes ${protocols[0]}//… addresses, and ${JSON.stringify(text)} is none.`);
}

interface Range {
  readonly kind: "number" | "whole number";
  readonly from: number;
  readonly to: number;
}

function numberOf(option: string, text: string, { kind, from, to }: Range): number {
  const value = Number(text);
  const isOne = kind === "number" ? /^\d+(\.\d+)?$/.test(text) : /^\d+$/.test(text);
  if (isOne && value >= from && value <= to) return value;
  throw new Misunderstood(`${option} takes a ${kind} from ${from} to ${to}, not ${JSON.stringify(text)}.`);
}
