// What can be done to one node: it dies, forgets, stands still; and a client of the lock's kind
// sees what the name of the fault says.
import { setTimeout as delay } from "node:timers/promises";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { Traffic } from "../../src/proxy/connection.js";
import type { FaultProxy } from "../../src/proxy/fault-proxy.js";
import type { RedisNode } from "../../src/redis/fleet.js";
import { RedisFleet } from "../../src/redis/fleet.js";

let fleet: RedisFleet;
let node: RedisNode;

beforeAll(async () => {
  fleet = await RedisFleet.start({ nodes: 1 });
  node = fleet.nodes[0] as RedisNode;
});

afterEach(async () => {
  await node.heal();
  await node.cli("PING").catch(() => node.restart());
});

afterAll(async () => {
  await fleet.stop();
});

/** Without retries, as the lock connects; in a partition its QUIT gets no answer. */
async function client(url = node.url): Promise<Redis> {
  const once = { retryStrategy: null, maxRetriesPerRequest: 0, disconnectTimeout: 20 };
  const redis = new Redis(url, { ...once, lazyConnect: true, enableOfflineQueue: false });
  redis.on("error", () => {});
  onTestFinished(() => redis.disconnect());
  await redis.connect();
  return redis;
}

/** A command's answer or its error, and whether there is one yet. */
function asked(answer: Promise<unknown>): { readonly answer: Promise<unknown>; readonly sofar: () => unknown } {
  let sofar: unknown = "no answer";
  const settled = answer
    .catch((cause: Error) => cause.message)
    .then((outcome) => {
      sofar = outcome;
      return outcome;
    });
  return { answer: settled, sofar: () => sofar };
}

const droppedBytes = ({ requests, replies }: Traffic): number => requests.droppedBytes + replies.droppedBytes;

/** Until the proxy has discarded something more than it had when this was called. */
async function untilSomethingIsLost(proxy: FaultProxy = node): Promise<void> {
  const before = droppedBytes(proxy.traffic);
  await proxy.until((traffic) => droppedBytes(traffic) > before);
}

const life = async (): Promise<unknown> => /run_id:\w+/.exec(String(await node.cli("INFO", "server")))?.[0];

describe("the server", () => {
  test("restarted, it remembers every acknowledged write, under the same address, in a new life", async () => {
    const before = { url: node.url, life: await life() };
    const redis = await client();
    for (let index = 0; index < 50; index += 1) await redis.set(`acknowledged:${index}`, index);
    await node.kill();
    await node.restart();
    expect(await node.cli("EXISTS", ...Array.from({ length: 50 }, (_, index) => `acknowledged:${index}`))).toBe(50);
    expect(node.url).toBe(before.url);
    expect(await life()).not.toBe(before.life);
  });

  test("restarted with forget, it has lost all it knew", async () => {
    await node.cli("SET", "k", "v");
    await node.restart({ forget: true });
    expect(await node.cli("DBSIZE")).toBe(0);
    await node.cli("SET", "k", "w");
    await node.restart();
    expect(await node.cli("GET", "k")).toBe("w");
  });

  test("paused, it stands still with its connections open; resumed, it answers what was asked meanwhile", async () => {
    const redis = await client();
    await node.pause();
    const before = node.traffic.requests.passedBytes;
    const set = asked(redis.set("k", "asked while paused"));
    await node.until(({ requests }) => requests.passedBytes > before);
    // An answer would have come by now: it takes a tenth of this.
    await delay(20);
    expect([set.sofar(), redis.status]).toEqual(["no answer", "ready"]);
    await node.resume();
    expect(await set.answer).toBe("OK");
  });
});

describe("the network in front of it", () => {
  test("partition outlasts a restart of the server", async () => {
    await node.partition();
    await node.restart();
    const lost = untilSomethingIsLost();
    const connecting = asked(client());
    await lost;
    expect(connecting.sofar()).toBe("no answer");
    await node.heal();
    expect(await connecting.answer).toBe("Connection is closed.");
    expect(await (await client()).ping()).toBe("PONG");
  });

  test("another way to the same server has faults of its own", async () => {
    const way = await node.anotherWay();
    const [cutOff, fine] = [await client(`redis://${way.host}:${way.port}`), await client()];
    await way.partition();
    const lost = untilSomethingIsLost(way);
    const ping = asked(cutOff.ping());
    await lost;
    expect(await fine.ping()).toBe("PONG");
    expect(ping.sofar()).toBe("no answer");
    await node.kill();
    await node.restart();
    await way.heal();
    expect(await (await client(`redis://${way.host}:${way.port}`)).ping()).toBe("PONG");
  });
});
