// An answer is told once, at the moment it comes, or to whoever asks for it later.
import { describe, expect, test } from "vitest";
import type { Ballot } from "../../../src/protocol/ballot.js";
import { Asked } from "../../../src/redis/pending-reply.js";
import { inspect, type RequestKind } from "../../../src/redis/requests.js";

const ballot: Ballot = { kind: "quarantined", node: "n1" };
const asked = (): Asked => new Asked(inspect as unknown as RequestKind<unknown, Ballot>, "r");

describe("an answer", () => {
  test("is told at once to whoever asked for it before it came", () => {
    const question = asked();
    const told: Ballot[] = [];
    question.then((answer) => told.push(answer));
    expect(told).toEqual([]);
    question.resolve(ballot);
    expect(told).toEqual([ballot]);
  });

  test("is never told within the asking, even if it is there", async () => {
    const question = asked();
    question.resolve(ballot);
    const told: Ballot[] = [];
    question.then((answer) => told.push(answer));
    expect(told).toEqual([]);
    expect(await question).toBe(ballot);
    expect(told).toEqual([ballot]);
  });

  test("goes to one only", () => {
    const question = asked();
    question.then(() => {});
    expect(() => question.then(() => {})).toThrow("told once");
  });
});
