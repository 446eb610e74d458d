// Arguments of the programs of this workspace: read, or refused in one sentence.
import { type ParseArgsConfig, parseArgs } from "node:util";

/** The arguments make no sense; the message says which, and what there is. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

export function readArguments<const Config extends ParseArgsConfig>(config: Config): ReturnType<typeof parseArgs<Config>> {
  try {
    return parseArgs(config);
  } catch (error) {
    const [sentence = ""] = (error as Error).message.split(/\.(?: To specify|\s|$)/);
    const known = Object.keys(config.options ?? {}).map((name) => `--${name}`);
    throw new UsageError(sentence.startsWith("Unknown option") ? `${sentence}; there are ${known.join(", ")}.` : `${sentence}.`);
  }
}

interface Range {
  readonly least: number;
  readonly most: number;
  readonly isWhole?: boolean;
}

/** The number that was given for an option, if one was. */
export function numberOf(option: string, text: string | undefined, { least, most, isWhole = true }: Range): number | undefined {
  if (text === undefined) return undefined;
  const number = Number(text);
  if (text.trim() !== "" && number >= least && number <= most && (Number.isInteger(number) || !isWhole)) return number;
  throw new UsageError(`${option} takes a ${isWhole ? "whole " : ""}number from ${least} to ${most}, not ${JSON.stringify(text)}.`);
}
