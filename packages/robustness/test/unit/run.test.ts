// The course of a run, with workers that never finish.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type Ran, run } from "../../src/harness/run.js";
import type { Workers } from "../../src/harness/workers.js";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Never done. */
const workers = {
  tell: () => {},
  said: (kind: string, signal?: AbortSignal) =>
    kind === "ready"
      ? Promise.resolve(true)
      : new Promise<boolean>((resolve) => signal?.addEventListener("abort", () => resolve(false), { once: true })),
  [Symbol.asyncDispose]: async () => {},
};

test("one limit covers the undoing of the faults and the recovery", async () => {
  let ran: Ran<{ workers: Workers }> | undefined;
  const phases: string[] = [];
  const running = run({
    start: async () => ({ workers: workers as unknown as Workers }),
    inject: async (_, { over }) => {
      await new Promise<void>((resolve) => over.addEventListener("abort", () => resolve(), { once: true }));
      await new Promise<void>((resolve) => setTimeout(resolve, 7_000));
    },
    traffic: async () => {},
    recoveryMs: 10_000,
    onPhase: (phase) => phases.push(phase),
  }).then((result) => {
    ran = result;
  });
  await vi.advanceTimersByTimeAsync(9_999);
  expect(phases.at(-1)).toBe("recovering");
  expect(ran).toBeUndefined();
  await vi.advanceTimersByTimeAsync(1);
  await running;
  expect(ran?.isRecovered).toBe(false);
});
