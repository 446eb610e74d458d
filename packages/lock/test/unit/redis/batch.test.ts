// What travels in one call, encoded once for all nodes, and when a pending reply calls back.
import { describe, expect, test } from "vitest";
import type { Ballot } from "../../../src/protocol/ballot.js";
import { type AnyVerb, keysOf, type Verb, verbs } from "../../../src/protocol/verbs.js";
import { type Batch, BatchEncoder, endOfBatch } from "../../../src/redis/calls.js";
import { PendingReply } from "../../../src/redis/pipeline.js";

const lease = { resources: ["é"], owner: "o", label: "l", ttlMs: 7, token: 2, tells: true };

function pending(verb: Verb, question: object = lease): PendingReply {
  return new PendingReply(verbs[verb] as AnyVerb, { ...lease, ...question }, "");
}

/** The same requests for another node. */
const again = (batch: Batch): Batch => batch.map(({ verb, question }) => new PendingReply(verb, question, "")) as unknown as Batch;

describe("an encoded call", () => {
  test("is the very same one for every node that is sent the same, and for no other", () => {
    const encoder = new BatchEncoder(keysOf("ns", "inbox"));
    const grants: Batch = [pending("grant"), pending("grant")];
    const releases: Batch = [pending("release")];
    const call = encoder.encode(grants);
    expect(encoder.encode(releases)).not.toBe(call);
    expect(encoder.encode(again(grants))).toBe(call);
    expect(encoder.encode([grants[0]])).not.toBe(call);
    expect(encoder.encode([pending("grant"), pending("grant")])).not.toBe(call);
    expect(encoder.encode([new PendingReply(releases[0].verb, grants[0].question, "")])).not.toBe(call);
  });

  test("consists of the bytes that Redis reads", () => {
    const { keyCount, words, wire } = new BatchEncoder(keysOf("ns", "inbox")).encode([pending("grant")]);
    expect(keyCount).toBe(3);
    expect(words).toEqual(["{ns}:node", "{ns}:lock:é", "{ns}:token:é", "7", "o|l"]);
    expect(String(wire)).toBe("$9\r\n{ns}:node\r\n$12\r\n{ns}:lock:é\r\n$13\r\n{ns}:token:é\r\n$1\r\n7\r\n$3\r\no|l\r\n");
  });

  test("is written in bytes where it is long, and they are the same", () => {
    const run = Array.from({ length: 100 }, () => pending("grant")) as unknown as Batch;
    const { words, wire } = new BatchEncoder(keysOf("ns", "inbox")).encode(run);
    expect(wire).toBeInstanceOf(Buffer);
    expect(String(wire)).toBe(words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join(""));
  });

  test("confirms the admission record only in a grant of one resource", () => {
    const encoder = new BatchEncoder(keysOf("ns", "inbox"));
    expect(encoder.encode([pending("grant")]).confirmsAdmission).toBe(true);
    expect(encoder.encode([pending("grant"), pending("grant")]).confirmsAdmission).toBe(false);
    expect(encoder.encode([pending("grant", { resources: ["a", "b"] })]).confirmsAdmission).toBe(false);
    expect(encoder.encode([pending("release")]).confirmsAdmission).toBe(false);
  });
});

describe("a run", () => {
  const lengths = (queue: readonly PendingReply[]): readonly number[] => {
    const ends = [];
    for (let at = 0; at < queue.length; at = endOfBatch(queue, at)) ends.push(endOfBatch(queue, at) - at);
    return ends;
  };

  test("W1 of claims names the ticket of each", () => {
    const claims = [":x", ":y"].map((ticket) => pending("claim", { wait: { sinceMs: 1, waitedMs: 0, ticket, reserveMs: 40 } }));
    expect(lengths(claims)).toEqual([2]);
    const { words } = new BatchEncoder(keysOf("ns", "inbox")).encode(claims as unknown as Batch);
    expect(words).toEqual(expect.arrayContaining(["inbox:x", "inbox:y"]));
  });

  test("ends where the script, the number of resources or the ttl changes", () => {
    const two = { resources: ["a", "b"] };
    expect(lengths([pending("grant"), pending("grant"), pending("release"), pending("grant")])).toEqual([2, 1, 1]);
    expect(lengths([pending("grant"), pending("grant", two), pending("grant", two)])).toEqual([1, 2]);
    expect(lengths([pending("grant"), pending("grant", { ttlMs: 8 }), pending("grant", { ttlMs: 8 })])).toEqual([1, 2]);
    expect(lengths([pending("release"), pending("release", { ttlMs: 8 }), pending("leave")])).toEqual([3]);
  });

  test("has 256 requests at most, and 1024 resources, or one request", () => {
    const resources = Array.from({ length: 128 }, (_, index) => `r${index}`);
    expect(lengths(Array.from({ length: 300 }, () => pending("grant")))).toEqual([256, 44]);
    expect(lengths(Array.from({ length: 9 }, () => pending("grant", { resources })))).toEqual([8, 1]);
    expect(lengths(Array.from({ length: 2 }, () => pending("grant", { resources: Array.from({ length: 2_000 }, String) })))).toEqual([
      1, 1,
    ]);
  });
});

describe("a pending reply", () => {
  const ballot: Ballot = { kind: "quarantined", node: "n1" };
  const inspection = (): PendingReply => new PendingReply(verbs.inspect as AnyVerb, { resources: ["r"] }, "");

  test("calls back at once if the callback was there before the ballot", () => {
    const reply = inspection();
    const told: Ballot[] = [];
    reply.then((answer) => told.push(answer));
    expect(told).toEqual([]);
    reply.resolve(ballot);
    expect(told).toEqual([ballot]);
  });

  test("never calls back within then, even if the ballot is there", async () => {
    const reply = inspection();
    reply.resolve(ballot);
    const told: Ballot[] = [];
    reply.then((answer) => told.push(answer));
    expect(told).toEqual([]);
    expect(await reply).toBe(ballot);
    expect(told).toEqual([ballot]);
  });

  test("has one callback only", () => {
    const reply = inspection();
    reply.then(() => {});
    expect(() => reply.then(() => {})).toThrow("one callback");
  });
});
