// Whose turn it is among work that needs a connection to itself. Needs no server.
import { describe, expect, test, vi } from "vitest";
import { HeldRows, Line } from "../../../src/store/slots.js";
import type { WriteConnection } from "../../../src/store/write-connection.js";

const limits = { maxAccepted: 100, maxAcceptedBytes: 100, maxWaitMs: 60_000 };
interface Answer {
  readonly kind: "committed" | "held";
  readonly rows: readonly string[];
}
type Ends = (kind: Answer["kind"]) => void;

/** A line over so many connections; `ends` has what is under way, by resource, in the order of its beginning. */
function lineOver(connections: number) {
  const heldRows = new HeldRows();
  const idle = Array.from({ length: connections }, () => ({}) as WriteConnection);
  const slots = { tryTake: () => idle.pop(), release: (connection: WriteConnection) => void idle.push(connection) };
  const line = new Line({ slots, heldRows, limits });
  const ends = new Map<string, Ends>();
  const begin = (resource: string, key = resource) =>
    line.use<Answer>([resource], () => new Promise((resolve) => ends.set(key, (kind) => resolve({ kind, rows: [resource] } as never))));
  const end = async (key: string, kind: Parameters<Ends>[0] = "committed"): Promise<void> => {
    ends.get(key)?.(kind);
    ends.delete(key);
    await nextTurn();
  };
  return { heldRows, begin, end, underWay: () => [...ends.keys()] };
}

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

describe("the line", () => {
  test("G6 lets work on held rows begin one at a time, and others past it", async () => {
    const { heldRows, begin, end, underWay } = lineOver(2);
    for (const name of ["held", "too"]) heldRows.mark(name, "failed");
    for (const name of ["held", "too", "a", "b"]) void begin(name);
    await nextTurn();
    expect(underWay()).toEqual(["held", "a"]);
    await end("a");
    expect(underWay()).toEqual(["held", "b"]);
    await end("held");
    expect(underWay()).toEqual(["b", "too"]);
  });

  test("G6 over one connection held rows and others take turns", async () => {
    const { heldRows, begin, end, underWay } = lineOver(1);
    for (const name of ["h1", "h2", "h3"]) heldRows.mark(name, "failed");
    for (const name of ["h1", "h2", "h3", "a", "b"]) void begin(name);
    const order: string[] = [];
    for (let n = 0; n < 5; n += 1) {
      await nextTurn();
      order.push(...underWay());
      await end(underWay()[0] ?? "");
    }
    expect(order).toEqual(["h1", "a", "h2", "b", "h3"]);
  });

  test("G6 work that waited while its row was found held is told so without a try, and what comes later is tried", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    try {
      const { begin, end, underWay } = lineOver(1);
      const answers = [begin("r", "first"), begin("r", "second")];
      await nextTurn();
      vi.advanceTimersByTime(10);
      await end("first", "held");
      expect(await Promise.all(answers)).toMatchObject([{ kind: "held" }, { kind: "held" }]);
      vi.advanceTimersByTime(10);
      const later = begin("r", "later");
      await nextTurn();
      expect(underWay()).toEqual(["later"]);
      await end("later");
      expect(await later).toMatchObject({ kind: "committed" });
    } finally {
      vi.useRealTimers();
    }
  });
});
