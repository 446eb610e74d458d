// Whose large read is next, what several share, and which connections take too little: with reads and
// connections that do what the test says.
import { EventEmitter } from "node:events";
import type { ServerResponse } from "node:http";
import { describe, expect, test, vi } from "vitest";
import { sendBody } from "../../../src/http/connection-state.js";
import type { Serving } from "../../../src/http/dispatcher.js";
import { Problem } from "../../../src/http/problems.js";
import type { RequestContext } from "../../../src/http/request.js";
import { Sending } from "../../../src/http/sending.js";
import { seal } from "../../../src/http/writes.js";

const MB = 1_000_000;
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Documents of at most 10 MB, which are 15 MB as they are shown. */
function opened({ budgetBytes = 100 * MB, maxWaitMs = 60_000 } = {}) {
  const sending = new Sending({ documentLimitBytes: 10 * MB, maxWaitMs, budgetBytes, lookEveryMs: 1_000 });
  const asked: { readonly name: string; answer(bytes: number): void }[] = [];
  const read = (caller: string, name: string, isDone = false) =>
    sending.read(
      { caller, key: name, isDone },
      () => new Promise<number>((answer) => asked.push({ name, answer })),
      (bytes) => bytes,
    );
  return { sending, asked, read, names: () => asked.map(({ name }) => name) };
}

/** A connection on which an answer is being sent. */
function connection() {
  const socket = Object.assign(new EventEmitter(), {
    bytesWritten: 0,
    writableLength: 10 * MB,
    destroyed: false,
    destroy: () => socket.emit("close"),
  });
  const response = Object.assign(new EventEmitter(), { writableLength: 10 * MB, writableEnded: false, socket, req: { socket } });
  return { socket, response: response as unknown as ServerResponse };
}

describe("large reads", () => {
  test("G6 are one at a time, of each caller in turn, and all who want the same get one", async () => {
    const { asked, read, names, sending } = opened();
    const greedy = ["a", "b", "c"].map((name) => read("greedy", name));
    const other = [read("other", "d"), read("third", "a"), read("third", "c")];
    for (const expected of ["a", "ad", "adb", "adbc"]) {
      await turn();
      expect(names().join("")).toBe(expected);
      asked.at(-1)?.answer(asked.length);
    }
    const results = await Promise.all([...greedy, ...other]);
    expect(results.map((found) => found?.result)).toEqual([1, 3, 4, 2, 1, 4]);
    expect(sending.shares.held).toBe(1 + 2 + 3 + 4);
    for (const found of results) if (found !== undefined) sending.leave(found.held);
    expect(sending.shares.held).toBe(0);
  });

  test("G6 of a caller that holds its share wait until it has sent some, or too long; another caller's do not", async () => {
    const { asked, read, names, sending } = opened({ maxWaitMs: 20 });
    const unsent = [];
    for (const name of ["a", "b", "c", "d", "e", "f", "g"]) {
      const found = read("greedy", name);
      await turn();
      asked.at(-1)?.answer(10 * MB);
      unsent.push(await found);
    }
    expect(unsent.map((found) => found?.result)).toEqual([...Array.from({ length: 6 }, () => 10 * MB), undefined]);
    const other = read("other", "x");
    await turn();
    expect(names().at(-1)).toBe("x");
    asked.at(-1)?.answer(1);
    expect((await other)?.result).toBe(1);
    expect(sending.hasRoom("other", 100)).toBe(true);
    const next = read("greedy", "h");
    for (const found of unsent) if (found !== undefined) sending.leave(found.held);
    await turn();
    asked.at(-1)?.answer(2);
    expect((await next)?.result).toBe(2);
  });

  test("G3 for what was done already wait four times as long: their caller would be left in doubt", async ({ onTestFinished }) => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    onTestFinished(() => void vi.useRealTimers());
    const { read } = opened({ maxWaitMs: 1_000 });
    const [first, second] = ["a", "b"].map((name) => read("greedy", name));
    const ended: string[] = [];
    void read("greedy", "c").then(() => ended.push("to be read"));
    void read("greedy", "d", true).then(() => ended.push("was sealed"));
    const after: string[][] = [];
    for (const ms of [999, 100, 2_850, 200]) {
      await vi.advanceTimersByTimeAsync(ms);
      after.push([...ended]);
    }
    expect(after).toEqual([[], ["to be read"], ["to be read"], ["to be read", "was sealed"]]);
    expect([first, second]).toEqual([expect.any(Promise), expect.any(Promise)]);
  });

  test("that fail are not what the next one gets", async () => {
    const { asked, read, names } = opened();
    const failed = read("one", "a");
    await turn();
    asked[0]?.answer(0);
    await failed;
    void read("two", "a");
    await turn();
    expect(names()).toEqual(["a", "a"]);
  });
});

test("G6 an answer counts until its connection has taken it, and one that takes too little is closed", ({ onTestFinished }) => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "setImmediate"] });
  onTestFinished(() => void vi.useRealTimers());
  const { sending } = opened();
  const [stalled, slow, behind] = [connection(), connection(), connection()];
  Object.assign(behind.response, { socket: null }); // Another answer is before it.
  for (const { response } of [stalled, slow, behind]) sending.sent(response, "one", undefined);
  expect(sending.shares.held).toBe(30 * MB);
  for (let look = 0; look < 5; look += 1) {
    vi.advanceTimersByTime(1_001);
    slow.socket.bytesWritten += 65_536;
    stalled.socket.bytesWritten += 65_535;
  }
  expect(sending.shares.held).toBe(20 * MB);
  slow.response.emit("finish");
  behind.socket.emit("close");
  expect(sending.shares.held).toBe(0);
  slow.socket.emit("close");
  expect(sending.shares.held).toBe(0);
});

test("G6 an answer that is taken as fast as it is written leaves the turns of the event loop to others", async () => {
  const written: number[] = [];
  const write = (slice: Buffer): boolean => {
    written.push(slice.length);
    process.nextTick(() => response.emit("drain"));
    return false;
  };
  const response = Object.assign(new EventEmitter(), { write, end: () => written.push(0), req: { socket: {} }, shouldKeepAlive: true });
  sendBody(response as unknown as ServerResponse, [Buffer.alloc(10 * 65_536)]);
  await turn();
  expect(written.length).toBeLessThan(4);
  while (written.at(-1) !== 0) await turn();
  expect(written).toHaveLength(11);
});

test("G1 the seal of a large document shows what stood behind its fence, and nothing that was written since", async () => {
  const { sending } = opened();
  const sealed = { kind: "accepted", resource: "a", rev: 7, token: 5, created: false, deleted: false };
  const answerWhen = async (found: object) => {
    const store = { write: async () => sealed, readWhole: async () => ({ kind: "found", ...found, value: Buffer.from("{}") }) };
    const context = { resource: "a", principal: { id: "one", scopes: [] }, headers: { fencingToken: "5" } } as unknown as RequestContext;
    const answer = await seal(context, { sending, store, metrics: { writeDone: () => undefined } } as unknown as Serving);
    if (context.held !== undefined) sending.leave(context.held);
    return answer instanceof Problem ? answer.code : "body" in answer && (answer.body as Buffer[]).join("");
  };
  expect(await answerWhen({ rev: 7, token: 5 })).toBe('{"resource":"a","token":5,"rev":7,"value":{}}');
  expect(await answerWhen({ rev: 8, token: 5 })).toBe("outcome_unknown");
  expect(await answerWhen({ rev: 7, token: 6 })).toBe("outcome_unknown");
});
