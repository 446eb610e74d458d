// What a scenario is: acts that run one after the other, at least one of them a control, which leaves out a measure and
// shows the damage. A scenario is proven when every claim of every act came true.
import { type Route, UnexpectedOutcome } from "../worker/protocol.js";
import { ActRun, type RunOptions } from "./act-run.js";

export interface Scenario {
  readonly name: string;
  /** One line for the list. */
  readonly about: string;
  readonly acts: readonly Act[];
  /** The last line, when every claim came true. */
  readonly proven: string;
}

export interface Act {
  readonly title: string;
  /** The lanes from left to right; others that a step names are added at the right. */
  readonly actors: readonly string[];
  /** How the workers of this act reach the store. */
  readonly route: Route;
  readonly play: (act: ActRun) => Promise<void>;
}

export async function runScenario(scenario: Scenario, options: RunOptions): Promise<"proven" | "differs"> {
  const startedAt = performance.now();
  const { name, about, acts, proven } = scenario;
  const { output, ttlMs } = options;
  output.show({ event: "scenario", scenario: name, about, ttlMs });
  const end = (ok: boolean, text: string): void =>
    output.show({ event: "end", scenario: name, ok, elapsedMs: performance.now() - startedAt, proven: text });
  try {
    for (const [index, { title, actors, route, play }] of acts.entries()) {
      await using act = new ActRun(options, { scenario: name, number: index + 1, title, actors, route });
      await play(act);
    }
  } catch (error) {
    // After Ctrl-C it ends without a verdict.
    if (options.signal?.aborted !== true) end(false, reasonOf(error));
    return "differs";
  }
  end(true, proven);
  return "proven";
}

/** A claim that did not come true is one thing, a server or a compiler that is missing is another. */
function reasonOf(thrown: unknown): string {
  let error = thrown;
  // The first failure, not those while the act was cleaned up after it.
  while (error instanceof Error && "suppressed" in error) error = error.suppressed;
  const message = error instanceof Error ? error.message : String(error);
  return `The story ${error instanceof UnexpectedOutcome ? "ended differently" : "could not be told"}. ${message}`;
}
