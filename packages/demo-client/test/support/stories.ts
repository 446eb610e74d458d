// Tells scenarios to nobody on a stage of the file's own, and gives what was noticed to the test.
import type { TestDatabase } from "@palisade/testkit";
import { test as base } from "@palisade/testkit/vitest";
import { scenarios } from "../../src/catalogue.js";
import { perform } from "../../src/perform.js";
import type { Scenario } from "../../src/scenario.js";
import { openStage, type Stage } from "../../src/stage.js";
import type { Check, StoryEvent } from "../../src/story-event.js";

export const ttlMs = 500;

export const test = base.extend(
  "stage",
  { scope: "file" },
  async ({ database }: { database: TestDatabase }, { onCleanup }): Promise<Stage> => {
    const stage = await openStage({ databaseUrl: database.url });
    onCleanup(() => stage[Symbol.asyncDispose]());
    return stage;
  },
);

export interface Told {
  readonly outcome: "proven" | "differs";
  readonly events: readonly StoryEvent[];
  readonly checks: readonly Check[];
}

export async function tell(stage: Stage, scenario: Scenario): Promise<Told> {
  const events: StoryEvent[] = [];
  const audience = { notice: (event: StoryEvent) => void events.push(event) };
  const outcome = await perform(scenario, { stage, audience, ttlMs, beatMs: 0, run: "test" });
  return { outcome, events, checks: events.filter((event) => event.event === "check") };
}

export function scenario(name: string): Scenario {
  const found = scenarios.find((one) => one.name === name);
  if (found === undefined) throw new Error(`there is no scenario ${name}`);
  return found;
}
