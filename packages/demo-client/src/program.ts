// What every program here shares: it ends on the first Ctrl-C or SIGTERM after cleaning up, and a failure is one sentence and an exit code that is not 0.
// Decides no content.
import { errorPaint } from "./paint.js";

/** Those we listen to. Not SIGPIPE: whoever listens to that is told of every socket that a dead server leaves behind. */
const heard = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
const exitCodes = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129, SIGPIPE: 141 } as const;

/** Runs the program; `signal` aborts when the user wants it to end. Answers whether that was so. */
export async function runProgram(program: (signal: AbortSignal) => Promise<void>): Promise<"finished" | "failed" | keyof typeof exitCodes> {
  const wish = new AbortController();
  // Later signals go to whoever ends all children at once: for users who do not want to wait.
  for (const signal of heard) process.once(signal, () => wish.abort(signal));
  // Nobody reads any more (`| head -3`), or what is written can be kept nowhere. Node tells it as an error of the stream, because it ignores the signal.
  process.stdout.on("error", () => wish.abort("SIGPIPE"));
  process.stderr.on("error", () => wish.abort("SIGPIPE"));
  try {
    await program(wish.signal);
  } catch (error) {
    // What fails because it was told to end has not failed.
    if (!wish.signal.aborted) {
      console.error(errorPaint.red(error instanceof Error ? error.message : String(error)));
      process.exitCode = 1;
      return "failed";
    }
  }
  return wish.signal.aborted ? (wish.signal.reason as keyof typeof exitCodes) : "finished";
}

/** For programs that were not done when they were told to end. */
export function exitCodeOf(signal: keyof typeof exitCodes): number {
  return exitCodes[signal];
}

/** Resolves when the user wants the program to end. */
export async function wishToEnd(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const keepAlive = setInterval(() => {}, 60_000);
  await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
  clearInterval(keepAlive);
}
