// What the stream tells first of checks that failed before anybody watched, by a clock that is moved.
import { EventEmitter } from "node:events";
import type { ServerResponse } from "node:http";
import { expect, test, vi } from "vitest";
import type { WatchedGateway } from "../../src/gateway.js";
import { Live } from "../../src/live.js";
import type { State } from "../../src/messages.js";

test("a check that failed while no browser was open is told with how long that is, and is looked at every ten seconds", async ({
  onTestFinished,
}) => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const failing: { readonly name: string; readonly detail: string }[] = [];
  const failedChecks = vi.fn(async () => [...failing]);
  const gateway = {
    lock: undefined,
    refusals: { count: 0, since: 0, newest: () => [] },
    writeTotals: () => new Map<string, number>(),
    failedChecks,
  } as Partial<WatchedGateway> as WatchedGateway;
  const live = new Live(gateway, undefined);
  onTestFinished(() => live.close());
  await vi.advanceTimersByTimeAsync(60_000);
  expect(failedChecks).toHaveBeenCalledTimes(6);
  failing.push({ name: "writable", detail: "this server is read-only" });
  await vi.advanceTimersByTimeAsync(5 * 60_000);
  const told: string[] = [];
  const response = Object.assign(new EventEmitter(), { write: (text: string) => told.push(text), end: () => undefined });
  live.begin({ id: "on-call", requestId: "", may: () => true, isStillAllowed: async () => true }, response as unknown as ServerResponse);
  const [, data = ""] = told.map((text) => /^event: state\ndata: (.*)/.exec(text)?.[1]);
  const [fault] = (JSON.parse(data) as State).faults;
  expect(fault).toMatchObject({ check: "writable", detail: "this server is read-only" });
  expect(fault?.forMs).toBeGreaterThan(4.8 * 60_000);
});
