// Two gateways write while servers of the database are killed; what was told is held against what
// is stored.
import { setTimeout as sleep } from "node:timers/promises";
import { withClient } from "@palisade/testkit";
import { expect } from "@palisade/testkit/vitest";
import { openStore } from "../../src/postgres-store.js";
import { brokenPromises, Recorder } from "./history-checker.js";
import { longTimeouts } from "./long-timeouts.js";
import { uniqueName } from "./store.js";

export interface CrashStory {
  readonly databaseUrl: string;
  /** Each kills a server and brings it back. */
  readonly crashes: readonly (() => Promise<void>)[];
  /** Between two of them; 400 when absent. */
  readonly writesBetween?: number;
  readonly onTestFinished: (work: () => Promise<void>) => void;
}

const eventually = { interval: 10, timeout: 30_000 } as const;

/** What is not as it was told: nothing, if the promises hold. */
export async function brokenThroughCrashes({ databaseUrl, crashes, writesBetween = 400, onTestFinished }: CrashStory): Promise<unknown> {
  const open = () => openStore({ databaseUrl, history: "on", ...longTimeouts });
  const [one, two] = [await open(), await open()];
  const resources = Array.from({ length: 12 }, () => uniqueName("crash"));
  const recorder = new Recorder();
  let writing = true;
  const writers = Array.from({ length: 24 }, async (_, index) => {
    for (let round = 1; writing; round += 1) {
      const resource = resources[(index + round) % resources.length] ?? "";
      const op = round % 10 === 0 ? "seal" : round % 7 === 0 ? "delete" : "put";
      const verdict = await recorder.write(index % 2 === 0 ? one : two, { op, resource, token: 1 + Math.floor(round / 4) + (index % 3) });
      if (verdict.kind === "unavailable") await sleep(2);
    }
  });
  onTestFinished(async () => {
    writing = false;
    await Promise.all(writers);
    await Promise.all([one.close(), two.close()]);
  });
  const accepted = () => recorder.records.filter(({ verdict }) => verdict.kind === "accepted").length;
  const goOn = async (more: number): Promise<void> => {
    const before = accepted();
    await expect.poll(() => accepted() - before, eventually).toBeGreaterThan(more);
  };
  for (const crash of crashes) {
    await goOn(writesBetween);
    await crash();
  }
  await goOn(writesBetween / 2);
  writing = false;
  await Promise.all(writers);
  const kinds = new Set(recorder.records.map(({ verdict }) => verdict.kind));
  expect([...kinds]).toEqual(expect.arrayContaining(["accepted", "stale", "unavailable"]));
  return await withClient(databaseUrl, (client) => brokenPromises(client, recorder.records));
}
