// What travels together, and that it is written down once for all nodes, in the bytes that Redis reads.
import { describe, expect, test } from "vitest";
import { CallEncoder, endOfBatch, type Run } from "../../../src/redis/encoded-call.js";
import { keysOf } from "../../../src/redis/keys.js";
import { Asked } from "../../../src/redis/pending-reply.js";
import { grant, type RequestKind, release } from "../../../src/redis/requests.js";

const lease = { resources: ["é"], owner: "o", label: "l", ttlMs: 7, token: 2, turn: 3 };

function asked(kind: typeof grant | typeof release, question: object = lease): Asked {
  return new Asked(kind as unknown as RequestKind<unknown, never>, { ...lease, ...question });
}

/** The same questions for another node. */
const again = (run: Run): Run => run.map(({ kind, question }) => new Asked(kind, question)) as unknown as Run;

describe("a letter", () => {
  test("is the very same one for every node that is asked the same, and for nobody else", () => {
    const encoder = new CallEncoder(keysOf("ns"));
    const grants: Run = [asked(grant), asked(grant)];
    const releases: Run = [asked(release)];
    const call = encoder.encode(grants);
    expect(encoder.encode(releases)).not.toBe(call);
    expect(encoder.encode(again(grants))).toBe(call);
    expect(encoder.encode([grants[0]])).not.toBe(call);
    expect(encoder.encode([asked(grant), asked(grant)])).not.toBe(call);
    expect(encoder.encode([new Asked(releases[0].kind, grants[0].question)])).not.toBe(call);
  });

  test("is written in the bytes that Redis reads", () => {
    const { keyCount, words, wire } = new CallEncoder(keysOf("ns")).encode([asked(grant)]);
    expect(keyCount).toBe(3);
    expect(words).toEqual(["{ns}:node", "{ns}:lock:é", "{ns}:token:é", "7", "o|l"]);
    expect(String(wire)).toBe("$9\r\n{ns}:node\r\n$12\r\n{ns}:lock:é\r\n$13\r\n{ns}:token:é\r\n$1\r\n7\r\n$3\r\no|l\r\n");
  });

  test("is written in bytes where it is long, and they are the same", () => {
    const run = Array.from({ length: 100 }, () => asked(grant)) as unknown as Run;
    const { words, wire } = new CallEncoder(keysOf("ns")).encode(run);
    expect(wire).toBeInstanceOf(Buffer);
    expect(String(wire)).toBe(words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join(""));
  });

  test("asks to confirm what is believed of a node only where one resource is wanted", () => {
    const encoder = new CallEncoder(keysOf("ns"));
    expect(encoder.encode([asked(grant)]).asksToConfirm).toBe(true);
    expect(encoder.encode([asked(grant), asked(grant)]).asksToConfirm).toBe(false);
    expect(encoder.encode([asked(grant, { resources: ["a", "b"] })]).asksToConfirm).toBe(false);
    expect(encoder.encode([asked(release)]).asksToConfirm).toBe(false);
  });
});

describe("a run", () => {
  const lengths = (queue: readonly Asked[]): readonly number[] => {
    const ends = [];
    for (let at = 0; at < queue.length; at = endOfBatch(queue, at)) ends.push(endOfBatch(queue, at) - at);
    return ends;
  };

  test("ends where the kind, the number of resources or the ttl changes", () => {
    const two = { resources: ["a", "b"] };
    expect(lengths([asked(grant), asked(grant), asked(release), asked(grant)])).toEqual([2, 1, 1]);
    expect(lengths([asked(grant), asked(grant, two), asked(grant, two)])).toEqual([1, 2]);
    expect(lengths([asked(grant), asked(grant, { ttlMs: 8 }), asked(grant, { ttlMs: 8 })])).toEqual([1, 2]);
    expect(lengths([asked(release), asked(release, { ttlMs: 8 })])).toEqual([2]);
  });

  test("has 256 requests at most, and 1024 resources, or one request", () => {
    const resources = Array.from({ length: 128 }, (_, index) => `r${index}`);
    expect(lengths(Array.from({ length: 300 }, () => asked(grant)))).toEqual([256, 44]);
    expect(lengths(Array.from({ length: 9 }, () => asked(grant, { resources })))).toEqual([8, 1]);
    expect(lengths(Array.from({ length: 2 }, () => asked(grant, { resources: Array.from({ length: 2_000 }, String) })))).toEqual([1, 1]);
  });
});
