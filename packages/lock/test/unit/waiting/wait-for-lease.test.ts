// A crowd that keeps the nodes busy: a caller behind it can still give up, run out of time, or be
// rejected.
import { expect, test } from "vitest";
import { readLeaseRequest } from "../../../src/options/lease-request.js";
import type { FirstContact } from "../../../src/waiting/first-contact.js";
import { AcquireCalls } from "../../../src/waiting/wait-for-lease.js";
import { ManualClock } from "../manual-clock.js";
import { contextOf, ScriptedNode } from "../scripted-node.js";

const introduced = { isDone: true, check() {} } as unknown as FirstContact;

/** Everybody in front asks, and is not answered. */
function crowded() {
  const clock = new ManualClock();
  const node = new ScriptedNode("n1", { grant: () => new Promise(() => {}) });
  const context = contextOf([node], clock);
  const calls = new AcquireCalls(context, introduced);
  const ask = (resource: string, options?: object) =>
    calls.waitFor(readLeaseRequest("acquire", context.policy, { resources: resource, options })).catch((error: unknown) => error);
  const tryOnce = (resource: string) =>
    calls.tryOnce(readLeaseRequest("tryAcquire", context.policy, { resources: resource, options: undefined }));
  for (let i = 0; i < 1_024; i++) void ask(`in front ${i}`);
  return { context, clock, ask, tryOnce, asked: () => node.asked.length };
}

const microtasks = async (): Promise<void> => {
  for (let i = 0; i < 20; i++) await Promise.resolve();
};

test("a caller behind a crowd can give up, and never asks", async () => {
  const { ask, asked } = crowded();
  const aborter = new AbortController();
  const quitter = ask("r", { signal: aborter.signal });
  await microtasks();
  aborter.abort("enough");
  expect(await quitter).toMatchObject({ code: "LOCK_ABORTED", cause: "enough" });
  expect(asked()).toBe(1_024);
});

test("a caller behind a crowd waits for waitMs, and for one request's time at least, and is told why it failed", async () => {
  const { ask, clock } = crowded();
  const [one, other] = [ask("r", { waitMs: 0 }), ask("s", { waitMs: 400 })];
  await microtasks();
  clock.advance(250);
  expect(await one).toMatchObject({ code: "LOCK_TOO_SLOW", message: expect.stringContaining("1024") });
  clock.advance(150);
  expect(await other).toMatchObject({ code: "LOCK_TOO_SLOW" });
});

test("a caller behind a crowd is rejected when the locker closes", async () => {
  const { ask, context } = crowded();
  const waiting = ask("r");
  await microtasks();
  context.waiters.closed = true;
  for (const waiter of [...context.waiters.sleeping]) waiter.wake();
  expect(await waiting).toMatchObject({ code: "LOCK_ABORTED" });
});

test("tryAcquire behind a crowd waits no longer than one request may take, and says why it failed", async () => {
  const { tryOnce, clock } = crowded();
  const answered = tryOnce("r");
  await microtasks();
  clock.advance(250);
  expect(await answered).toMatchObject({
    code: "LOCK_TOO_SLOW",
    message: expect.stringMatching(/^r was not asked for in time: 1024 other attempts/),
  });
});
