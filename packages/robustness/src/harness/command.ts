// What the programs of this package share: arguments read or refused, progress, the exit code.
import { readValues, type Values } from "./arguments.js";

export interface Command<Asked> {
  readonly usage: string;
  readonly texts: readonly string[];
  readonly flags: readonly string[];
  /** Throws an error for people if it makes no sense. */
  read(values: Values): Asked;
  /** The exit code: 0 as promised, 1 not. */
  perform(asked: Asked): Promise<number>;
}

/** The exit code: 2 if the arguments make no sense. */
export async function runCommand<Asked>(command: Command<Asked>, args: readonly string[]): Promise<number> {
  let asked: Asked;
  try {
    const values = readValues(args, command.texts, command.flags);
    if (values.has("help")) {
      console.log(command.usage);
      return 0;
    }
    asked = command.read(values);
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${command.usage}`);
    return 2;
  }
  return command.perform(asked);
}

/** On a terminal one line that is overwritten; elsewhere a line every so often. */
export function progressLines(everyMs: number): (elapsedMs: number, line: string) => void {
  let nextAt = everyMs;
  return (elapsedMs, line) => {
    progress(line);
    if (process.stderr.isTTY || elapsedMs < nextAt) return;
    nextAt = elapsedMs + everyMs;
    console.log(line);
  };
}

/** Shown on a terminal only, and overwritten by the next line. */
export function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[2K${text}`);
}

export function progressEnded(): void {
  progress("");
}
