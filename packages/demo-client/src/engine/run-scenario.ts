// Runs the acts of a scenario one after the other. It is proven when every claim of every act came
// true.
import { UnexpectedOutcome } from "../worker/protocol.js";
import { ActRun, type RunOptions, type Scenario } from "./act-run.js";

export async function runScenario(scenario: Scenario, options: RunOptions): Promise<"proven" | "differs"> {
  const startedAt = performance.now();
  const { name, about, acts, proven } = scenario;
  const { output, ttlMs } = options;
  output.show({ event: "scenario", scenario: name, about, ttlMs });
  const end = (ok: boolean, text: string): void =>
    output.show({ event: "end", scenario: name, ok, elapsedMs: performance.now() - startedAt, proven: text });
  try {
    for (const act of acts) {
      await using run = new ActRun(options, scenario, act);
      await act.play(run);
    }
  } catch (error) {
    // After Ctrl-C it ends without a verdict.
    if (options.signal?.aborted !== true) end(false, reasonOf(error));
    return "differs";
  }
  end(true, proven);
  return "proven";
}

/**
 * A claim that did not come true is one thing, a server or a compiler that is missing is another.
 */
function reasonOf(thrown: unknown): string {
  let error = thrown;
  // The first failure, not those while the act was cleaned up after it.
  while (error instanceof Error && "suppressed" in error) error = error.suppressed;
  const message = error instanceof Error ? error.message : String(error);
  return `The scenario ${error instanceof UnexpectedOutcome ? "ended differently" : "could not be run"}. ${message}`;
}
