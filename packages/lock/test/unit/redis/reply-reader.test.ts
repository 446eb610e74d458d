// What a server sends is read the same however the network cuts it into pieces.
import fc from "fast-check";
import { expect, test } from "vitest";
import { ProtocolError, ReplyReader } from "../../../src/redis/link.js";

type Sent = number | string | null | { readonly error: string } | { readonly line: string } | readonly Sent[];

const line = fc.stringMatching(/^[ -~é→]{0,20}$/);
const { sent } = fc.letrec<{ sent: Sent }>((tie) => ({
  sent: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    fc.maxSafeInteger(),
    fc.string({ unit: "grapheme", maxLength: 60 }),
    fc.constant(null),
    fc.record({ error: line }),
    fc.record({ line }),
    fc.array(tie("sent"), { maxLength: 5 }),
  ),
}));

function written(reply: Sent): string {
  if (reply === null) return "$-1\r\n";
  if (typeof reply === "number") return `:${reply}\r\n`;
  if (typeof reply === "string") return `$${Buffer.byteLength(reply)}\r\n${reply}\r\n`;
  if ("error" in reply) return `-${reply.error}\r\n`;
  if ("line" in reply) return `+${reply.line}\r\n`;
  return `*${reply.length}\r\n${reply.map(written).join("")}`;
}

function understood(reply: Sent): unknown {
  if (reply === null || typeof reply !== "object") return reply;
  if ("error" in reply) return new Error(reply.error);
  if ("line" in reply) return reply.line;
  return reply.map(understood);
}

function readIn(pieces: readonly Buffer[]): unknown[] {
  const replies: unknown[] = [];
  const reader = new ReplyReader((reply) => replies.push(reply));
  for (const piece of pieces) reader.read(piece);
  return replies;
}

test("replies are the same in however many pieces they come", () => {
  fc.assert(
    fc.property(fc.array(sent, { maxLength: 6 }), fc.array(fc.nat(), { maxLength: 20 }), (replies, cuts) => {
      const bytes = Buffer.from(replies.map(written).join(""));
      const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].toSorted((one, other) => one - other);
      const pieces = places.slice(1).map((place, index) => bytes.subarray(places[index], place));
      expect(readIn(pieces)).toEqual(replies.map(understood));
      expect(readIn([...bytes].map((byte) => Buffer.of(byte)))).toEqual(replies.map(understood));
    }),
  );
});

test("a missing list is null", () => {
  expect(readIn([Buffer.from("*-1\r\n:7\r\n")])).toEqual([null, 7]);
});

test.each(["HTTP/1.1 400 Bad Request\r\n\r\n", "\r\n", ":\r\n", ":1\n", ":-\r\n", ":1x\r\n", ":1\rx", "$x\r\n", "*2\r\n:1\r\nx", "_\r\n"])(
  "%j is no reply",
  (text) => {
    expect(() => readIn([Buffer.from(text)])).toThrow(ProtocolError);
  },
);
