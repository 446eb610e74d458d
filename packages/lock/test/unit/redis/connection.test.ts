// A connection to one node: the options under which ioredis opens it, when a server that refuses for now is
// greeted again, and what becomes of commands and replies on its socket.

import { once } from "node:events";
import { Duplex } from "node:stream";
import fc from "fast-check";
import type { Redis, RedisOptions } from "ioredis";
import { expect, test } from "vitest";
import { keysOf } from "../../../src/protocol/verbs.js";
import { Connection, causeOf, type Link } from "../../../src/redis/connection.js";
import { LinkSocket, openClient, ProtocolError, ReplyReader } from "../../../src/redis/link.js";
import { ManualClock } from "../scripted-node.js";

const microtasks = async (): Promise<void> => {
  for (let i = 0; i < 50; i++) await Promise.resolve();
};

/** A server that accepts every connection, and answers its first request or refuses it for now. */
function accepted() {
  const clock = new ManualClock();
  const told = new Map<string, () => void>();
  const server = { isLoading: false, greetings: 0 };
  const status = ["0123abcd", "7.4.0", "master", "0", "1700000000000", ...new Array(9).fill("")];
  const link: Partial<Link> = {
    on: ((event: string, listener: () => void) => told.set(event, listener)) as Link["on"],
    connect: async () => {},
    call: async () => 1,
    eval: async () => {
      server.greetings++;
      if (server.isLoading) throw new Error("LOADING Redis is loading the dataset in memory");
      return status;
    },
  };
  const connection = new Connection({
    connectTimeoutMs: 10_000,
    connectionName: "test",
    clock,
    source: "redis://127.0.0.1:7000",
    openLink: () => link as Link,
    keys: keysOf("n", "process"),
    retentionMs: 1_000,
    onUp: () => {},
    onDown: () => {},
  });
  /** The connection is lost, and made again. */
  const reconnect = async (): Promise<void> => {
    told.get("close")?.();
    told.get("connect")?.();
    told.get("ready")?.();
    await microtasks();
  };
  /** After how many milliseconds a server that refuses is greeted again. */
  const greetedAgainAfterMs = async (): Promise<number> => {
    const before = server.greetings;
    const since = clock.now;
    while (server.greetings === before) {
      clock.advance(1);
      await microtasks();
    }
    return clock.now - since;
  };
  return { connection, server, reconnect, greetedAgainAfterMs };
}

test("W1 a server that loads its data is greeted again soon, however often it was connected to before", async () => {
  const { connection, server, reconnect, greetedAgainAfterMs } = accepted();
  for (let i = 0; i < 8; i++) await reconnect();
  expect(connection.isUp).toBe(true);
  server.isLoading = true;
  await reconnect();
  expect(connection.isUp).toBe(false);
  const first = await greetedAgainAfterMs();
  expect(first).toBeLessThanOrEqual(80);
  expect(await greetedAgainAfterMs()).toBe(2 * first);
  server.isLoading = false;
  await greetedAgainAfterMs();
  expect(connection.isUp).toBe(true);
});

// What becomes of commands and replies on the socket of a connection that ioredis has made.

/** The client's end of a connection whose server says what the test makes it say. */
function connected() {
  const written: string[] = [];
  const stream = new Duplex({
    read() {},
    write(bytes: Buffer, _encoding, done) {
      written.push(bytes.toString());
      done();
    },
  });
  const heard: string[] = [];
  const earlier: string[] = [];
  stream.on("data", (bytes: Buffer) => earlier.push(bytes.toString()));
  const socket = new LinkSocket(stream as unknown as Redis["stream"], (message) => heard.push(message));
  return { socket, stream, written, heard, earlier, says: (text: string) => stream.push(text) };
}

test("replies answer the commands in their order, and are read by nobody else", async () => {
  const { socket, written, earlier, says } = connected();
  const replies = Promise.all([socket.command("PING"), socket.command("GET", "é"), socket.command("NONE").catch(String)]);
  expect(written).toEqual(["*1\r\n$4\r\nPING\r\n", "*2\r\n$3\r\nGET\r\n$2\r\né\r\n", "*1\r\n$4\r\nNONE\r\n"]);
  says("+PONG\r\n$-1\r\n-ERR unknown command\r\n");
  expect(await replies).toEqual(["PONG", null, "Error: ERR unknown command"]);
  expect(earlier).toEqual([]);
});

test("the line feed of a reply that ioredis has read to its CR is no reply", async () => {
  const { socket, stream, says } = connected();
  const failed = once(stream, "error");
  const reply = socket.command("PING");
  says("\n");
  says("+PONG\r\n");
  expect(await Promise.race([reply, failed])).toBe("PONG");
  says("\n");
  const [error] = await failed;
  expect(causeOf(error)).toBe("garbage reply: not a Redis server");
});

test("a channel is joined or refused, and messages in between are messages", async () => {
  const { socket, heard, says } = connected();
  const joined = socket.subscribe("a");
  const refused = socket.subscribe("b").catch((error: unknown) => causeOf(error));
  const reply = socket.command("PING");
  says("*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\nhi\r\n");
  await joined;
  says("-NOPERM this user has no permissions\r\n+PONG\r\n");
  expect(await refused).toMatch(/^NOPERM/);
  expect(await reply).toBe("PONG");
  expect(heard).toEqual(["hi"]);
});

test("a reply that looks like a message is a reply where no channel was joined", async () => {
  const { socket, heard, says } = connected();
  const reply = socket.command("EVAL");
  says("*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\nhi\r\n");
  expect(await reply).toEqual(["message", "a", "hi"]);
  expect(heard).toEqual([]);
});

test.each([":1\r\n", "HTTP/1.1 400 Bad Request\r\n"])("%j, unasked, ends the connection with a reason", async (text) => {
  const { stream, says } = connected();
  const failed = once(stream, "error");
  says(text);
  const [error] = await failed;
  expect(causeOf(error)).toBe("garbage reply: not a Redis server");
  expect(stream.destroyed).toBe(true);
});

test("what is on its way when the connection is lost, and what is asked later, rejects", async () => {
  const { socket, stream } = connected();
  const onItsWay = socket.command("PING").catch(causeOf);
  stream.destroy();
  const later = socket.command("PING").catch(causeOf);
  socket.lost();
  expect(await Promise.all([onItsWay, later])).toEqual(["connection lost", "connection lost"]);
});

// What a server sends is read the same however the network cuts it into pieces.

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

// The options under which a connection is opened, whatever the user's own are: what ioredis would
// keep, send again or retry by itself leaves locks without a holder.

const settings = { connectTimeoutMs: 2_000, connectionName: "palisade:ns", clock: new ManualClock() };
const careless = {
  enableOfflineQueue: true,
  autoResendUnfulfilledCommands: true,
  maxRetriesPerRequest: null,
  reconnectOnError: () => true,
  commandTimeout: 7,
  enableAutoPipelining: true,
  keyPrefix: "mine:",
  lazyConnect: true,
} as const satisfies RedisOptions;

const ways = {
  "a URL": "redis://a:1",
  "a URL with options":
    "redis://a:1?enableOfflineQueue=true&autoResendUnfulfilledCommands=true&maxRetriesPerRequest=9&reconnectOnError=1&enableAutoPipelining=true&lazyConnect=&monitor=true&keyPrefix=mine",
  options: { host: "a", port: 1, ...careless },
} as const;

test.each(Object.entries(ways))("%s is opened so that no grant is kept for later, sent twice or given another name", (_, source) => {
  const { options } = openClient(source, settings) as Redis;
  expect(options).toMatchObject({
    host: "a",
    port: 1,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    reconnectOnError: null,
    enableAutoPipelining: false,
    keyPrefix: "",
    lazyConnect: true,
    monitor: false,
    connectTimeout: 2_000,
    connectionName: "palisade:ns",
  });
  expect(options.commandTimeout).toBe(undefined);
});

test("the next connection is tried soon, then less often, and not in step with others", () => {
  const { options } = openClient("redis://a:1", settings) as Redis;
  const delays = [1, 2, 3, 8, 100].map((times) => options.retryStrategy?.(times));
  expect(delays).toEqual([15, 30, 60, 1_500, 1_500]);
  settings.clock.chance = 0;
  expect(options.retryStrategy?.(1)).toBe(10);
});
