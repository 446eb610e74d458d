// What a fault of this program in the middle of a batch costs. Needs no server; all else about
// batches: test/real/group-commit.test.ts.
import { expect, test } from "vitest";
import type { Verdict } from "../../../src/fence/verdict.js";
import { HeldRows, type WriteSlots } from "../../../src/store/slots.js";
import type { WriteConnection } from "../../../src/store/write-connection.js";
import { type BatchEvent, GroupCommit } from "../../../src/write/group-commit.js";
import type { FencedWrites } from "../../../src/write/plain-writes.js";

const limits = {
  maxBatchRows: 4,
  maxBatchBytes: 100,
  documentLimitBytes: 1_000,
  maxQueuedWrites: 9,
  maxQueuedBytes: 1_000,
  maxWaitMs: 60_000,
};

test("G3 a batch whose statement throws leaves its slot and its connection, and its writes are unknown", async () => {
  let destroyed = 0;
  const idle = [{ destroy: () => void destroyed++ } as unknown as WriteConnection];
  const slots = { tryTake: () => idle.pop(), release: (connection: WriteConnection) => void idle.push(connection) };
  const each = async () => {
    throw new TypeError("a fault of this program");
  };
  const events: BatchEvent[] = [];
  const commit = new GroupCommit({
    writes: { current: { each } as unknown as FencedWrites },
    heldRows: new HeldRows(),
    slots: slots as unknown as WriteSlots,
    limits,
    observe: (event) => void events.push(event),
  });
  const write = (resource: string) =>
    commit.submit({ op: "put", resource, token: 1, seq: 1, value: "1" }, { verified: true, known: false }) as Promise<Verdict>;
  for (const names of [["a", "b"], ["a"]])
    for (const verdict of await Promise.all(names.map(write)))
      expect(verdict).toMatchObject({ kind: "outcome_unknown", cause: { message: "a fault of this program" } });
  expect([idle.length, destroyed, commit.queued.writes]).toEqual([1, 2, 0]);
  expect(events).toMatchObject([
    { kind: "batch", rows: 2, outcome: "unknown" },
    { kind: "batch", rows: 1, outcome: "unknown" },
  ]);
  await commit.drain();
}, 20_000);
