// Where the lock and the gateway are: from flags, the environment or a file of the same names, in
// this order. Secrets come from the environment or a file only: a command line is seen by every
// process of the machine.
import { readFileSync } from "node:fs";
import { parseEnv } from "node:util";
import { UsageError } from "./failure.js";

export interface GeneralFlags {
  readonly nodes?: string | undefined;
  readonly namespace?: string | undefined;
  readonly gateway?: string | undefined;
  readonly "env-file"?: string | undefined;
  readonly timeout?: string | undefined;
}

export interface Settings {
  readonly nodes: readonly string[] | undefined;
  readonly namespace: string | undefined;
  readonly gatewayUrl: string | undefined;
  readonly apiKey: string | undefined;
  readonly timeoutMs: number;
}

export type Environment = Readonly<Record<string, string | undefined>>;

const TIMEOUT_MS = 5_000;

export function settingsFrom(flags: GeneralFlags, env: Environment): Settings {
  const file = flags["env-file"] === undefined ? {} : environmentFile(flags["env-file"]);
  const value = (flag: string | undefined, name: string): string | undefined =>
    [flag, env[name], file[name]].find((text) => text !== undefined && text.trim() !== "")?.trim();
  const nodes = value(flags.nodes, "PALISADE_REDIS_URLS")
    ?.split(",")
    .map((url) => url.trim())
    .filter((url) => url !== "");
  if (flags.nodes !== undefined && /:\/\/[^/@]*:[^/@]+@/.test(flags.nodes))
    throw new UsageError(
      "--nodes holds a password, which every process of this machine can read. Give it as PALISADE_REDIS_URLS or in --env-file.",
    );
  return {
    nodes,
    namespace: value(flags.namespace, "PALISADE_NAMESPACE"),
    gatewayUrl: value(flags.gateway, "PALISADE_GATEWAY_URL"),
    apiKey: value(undefined, "PALISADE_API_KEY"),
    timeoutMs: flags.timeout === undefined ? TIMEOUT_MS : milliseconds(flags.timeout),
  };
}

function environmentFile(path: string): Environment {
  try {
    return parseEnv(readFileSync(path, "utf8")) as Environment;
  } catch (error) {
    throw new UsageError(`--env-file ${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function milliseconds(text: string): number {
  const seconds = Number(text);
  if (!(seconds > 0 && seconds <= 600))
    throw new UsageError(`--timeout is in seconds, above 0 and at most 600; not ${JSON.stringify(text)}.`);
  return Math.ceil(seconds * 1_000);
}
