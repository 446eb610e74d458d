// Tells one scenario from its first act to its last line. Decides whether it came out as it must: every claim of every act, or it did not.
import type { Scenario } from "./scenario.js";
import { Story, type Telling } from "./story.js";

export async function perform(scenario: Scenario, telling: Telling): Promise<"proven" | "differs"> {
  const startedAt = performance.now();
  const { audience, ttlMs } = telling;
  audience.notice({ event: "scenario", scenario: scenario.name, about: scenario.about, ttlMs });
  const end = (ok: boolean, proven: string): void =>
    audience.notice({ event: "end", scenario: scenario.name, ok, elapsedMs: performance.now() - startedAt, proven });
  try {
    for (const act of scenario.acts) {
      await using story = new Story(telling, scenario, act);
      await act.play(story);
    }
  } catch (error) {
    // Whoever stopped it knows why it did not end.
    if (telling.signal?.aborted !== true) end(false, error instanceof Error ? error.message : String(error));
    return "differs";
  }
  end(true, scenario.proven);
  return "proven";
}
