// Tells one scenario from its first act to its last line. Decides whether it came out as it must: every claim of every act, or it did not.
import type { Scenario } from "./scenario.js";
import { Story, type Telling } from "./story.js";
import { StoryDiffers } from "./story-differs.js";

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
    if (telling.signal?.aborted !== true) end(false, account(error));
    return "differs";
  }
  end(true, scenario.proven);
  return "proven";
}

/** A story that came out otherwise is one thing, a world in which it could not be told (no server, no compiler) is another. */
function account(thrown: unknown): string {
  let error = thrown;
  // What went wrong while the act was cleaned up is less than what had gone wrong before.
  while (error instanceof Error && "suppressed" in error) error = error.suppressed;
  const message = error instanceof Error ? error.message : String(error);
  return `The story ${error instanceof StoryDiffers ? "ended differently" : "could not be told"}. ${message}`;
}
