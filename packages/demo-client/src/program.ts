// What every program here shares: it ends on the first Ctrl-C or SIGTERM after cleaning up, and a
// failure is one sentence and an exit code that is not 0.
import { errorPaint } from "./output/text.js";

// Not SIGPIPE: a process that listens to it gets one for every socket of a dead server.
const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
const exitCodes = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129, SIGPIPE: 141 } as const;

type EndedBy = keyof typeof exitCodes;

/** Runs the program; `signal` aborts when the user wants it to end. */
export async function runProgram(program: (signal: AbortSignal) => Promise<void>): Promise<"finished" | "failed" | EndedBy> {
  const abort = new AbortController();
  // A second signal is left to the testkit, which then ends all children at once.
  for (const name of signals) process.once(name, () => abort.abort(name));
  // The reader has gone (`| head -3`), or the disk is full: Node reports an error of the stream.
  process.stdout.on("error", () => abort.abort("SIGPIPE"));
  process.stderr.on("error", () => abort.abort("SIGPIPE"));
  try {
    await program(abort.signal);
  } catch (error) {
    // What fails because the program was told to end is not a failure.
    if (!abort.signal.aborted) {
      console.error(errorPaint.red(error instanceof Error ? error.message : String(error)));
      process.exitCode = 1;
      return "failed";
    }
  }
  return abort.signal.aborted ? (abort.signal.reason as EndedBy) : "finished";
}

/** For a program that was not done when it was told to end. */
export function exitCodeOf(signal: EndedBy): number {
  return exitCodes[signal];
}
