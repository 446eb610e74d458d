// What becomes of commands and replies on the socket of a connection that ioredis has made.
import { once } from "node:events";
import { Duplex } from "node:stream";
import type { Redis } from "ioredis";
import { expect, test } from "vitest";
import { causeOf } from "../../../src/redis/connection.js";
import { LinkSocket } from "../../../src/redis/link.js";

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
