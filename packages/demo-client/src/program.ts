// What every program here shares: it ends on the first Ctrl-C or SIGTERM after cleaning up, and a failure is one sentence and exit code 1.
// Decides no content.
import pc from "picocolors";

/** Runs the program; `signal` aborts when the user wants it to end. */
export async function runProgram(program: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const wish = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => wish.abort(signal));
  try {
    await program(wish.signal);
    if (wish.signal.aborted && wish.signal.reason !== "SIGINT") process.exitCode = 1;
  } catch (error) {
    console.error(pc.red(error instanceof Error ? error.message : String(error)));
    process.exitCode = 1;
  }
}

/** Resolves when the user wants the program to end. */
export async function wishToEnd(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const keepAlive = setInterval(() => {}, 60_000);
  await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
  clearInterval(keepAlive);
}
