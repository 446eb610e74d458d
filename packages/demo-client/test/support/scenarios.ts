// Runs scenarios in an environment of the test file's own, and gives the events to the test.
import type { TestDatabase } from "@palisade/testkit";
import { test as base } from "@palisade/testkit/vitest";
import { runScenario, type Scenario } from "../../src/engine/act.js";
import { type Environment, openEnvironment } from "../../src/engine/environment.js";
import type { Check, DemoEvent } from "../../src/output/events.js";
import { scenarios } from "../../src/scenarios/catalogue.js";

export const ttlMs = 500;

export const test = base.extend(
  "environment",
  { scope: "file" },
  async ({ database }: { database: TestDatabase }, { onCleanup }): Promise<Environment> => {
    const environment = await openEnvironment({ databaseUrl: database.url });
    onCleanup(() => environment[Symbol.asyncDispose]());
    return environment;
  },
);

export interface Run {
  readonly outcome: "proven" | "differs";
  readonly events: readonly DemoEvent[];
  readonly checks: readonly Check[];
}

export async function run(environment: Environment, scenario: Scenario): Promise<Run> {
  const events: DemoEvent[] = [];
  const show = (event: DemoEvent): void => void events.push(event);
  const outcome = await runScenario(scenario, { environment, show, ttlMs, pauseMs: 0, run: "test" });
  return { outcome, events, checks: events.filter((event) => event.event === "check") };
}

export function scenario(name: string): Scenario {
  const found = scenarios.find((one) => one.name === name);
  if (found === undefined) throw new Error(`there is no scenario ${name}`);
  return found;
}
