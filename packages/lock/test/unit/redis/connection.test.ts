// When a server that refuses for now is greeted again.
import { expect, test } from "vitest";
import { keysOf } from "../../../src/protocol/verbs.js";
import { Connection, type Link } from "../../../src/redis/connection.js";
import { ManualClock } from "../scripted-node.js";

const microtasks = async (): Promise<void> => {
  for (let i = 0; i < 50; i++) await Promise.resolve();
};

/** A server that accepts every connection, and answers its first request or refuses it for now. */
function connected() {
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
  const { connection, server, reconnect, greetedAgainAfterMs } = connected();
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
