// Every fault of the proxy does what its name says, to both ends of a connection, and heals.
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect } from "vitest";
import { takePort } from "../../src/process/port-block.js";
import { test } from "./proxy-apparatus.js";

describe("without a fault", () => {
  test("one side may end while the other still talks", async ({ stage, client, server }) => {
    client.socket.end("last words");
    await server.receives("last words");
    expect(await server.ends()).toBe("end");
    server.socket.end("answer");
    await client.receives("answer");
    expect(await client.ends()).toBe("end");
    await stage.proxy.until(() => stage.proxy.connections === 0);
  });

  test("a reset on one side is a reset on the other", async ({ client, server }) => {
    server.socket.resetAndDestroy();
    expect(await client.ends()).toBe("ECONNRESET");
  });
});

describe("partition", () => {
  test("nothing passes either way, and both ends stay open", async ({ stage, client, server }) => {
    stage.proxy.partition();
    client.send("request");
    server.send("reply");
    await stage.proxy.until(({ requests, replies }) => requests.droppedBytes === 7 && replies.droppedBytes === 5);
    expect([client.text, client.ending, server.text, server.ending]).toEqual(["", undefined, "", undefined]);
  });

  test("a new connection hangs: it reaches no server and is told nothing", async ({ stage }) => {
    stage.proxy.partition();
    const client = await stage.client();
    client.send("anybody?");
    await stage.proxy.until(({ requests }) => requests.droppedBytes === 8);
    expect([client.ending, stage.served.length]).toEqual([undefined, 0]);
  });

  test("the end of a server is not heard on the other side until the partition heals", async ({ stage, client }) => {
    stage.proxy.partition();
    await stage.killServer();
    await stage.proxy.serverDown();
    const late = await stage.client();
    late.send("x");
    await stage.proxy.until(({ requests }) => requests.droppedBytes === 1);
    expect([client.ending, late.ending]).toEqual([undefined, undefined]);
    await stage.proxy.heal();
    expect(await client.ends()).not.toBe("");
    expect(await (await stage.client()).ends()).toBe("ECONNREFUSED");
  });

  test("healed, a connection that lost bytes is cut, and one that lost none goes on", async ({ stage }) => {
    const talker = await stage.pair();
    const silent = await stage.pair();
    stage.proxy.partition();
    const hanging = await stage.client();
    talker.client.send("lost");
    await stage.proxy.until(({ requests }) => requests.droppedBytes === 4);
    await stage.proxy.heal();
    expect(await talker.client.ends()).toBeDefined();
    expect(await talker.server.ends()).toBeDefined();
    silent.client.send("still here");
    await silent.server.receives("still here");
    hanging.send("at last");
    await stage.proxy.until(({ requests }) => requests.passedBytes === 17);
    expect(stage.served.at(-1)?.ending).toBeUndefined();
  });
});

describe("slow", () => {
  test("every chunk takes the delay, each way, and order is kept", async ({ stage, client, server }) => {
    stage.proxy.slow(40);
    const sentAt = performance.now();
    client.send("a");
    await delay(5);
    client.send("b");
    await server.receives("ab");
    server.send("c");
    await client.receives("c");
    expect(performance.now() - sentAt).toBeGreaterThanOrEqual(80);
  });
});

describe("drop", () => {
  test("dropReplies lets the request arrive and the reply vanish", async ({ stage, client, server }) => {
    stage.proxy.dropReplies();
    client.send("write");
    await server.receives("write");
    server.send("written");
    await stage.proxy.until(({ replies }) => replies.droppedBytes === 7);
    expect([client.text, client.ending]).toEqual(["", undefined]);
    await stage.proxy.heal();
    expect(await client.ends()).toBeDefined();
    const again = await stage.pair();
    again.server.send("fine");
    await again.client.receives("fine");
  });

  test("once bytes are lost, nothing later on that connection is delivered, so that no gap is seen", async ({ stage, client, server }) => {
    stage.proxy.dropReplies();
    server.send("one");
    await stage.proxy.until(({ replies }) => replies.droppedBytes === 3);
    stage.proxy.holdReplies();
    server.send("two");
    await stage.proxy.until(({ replies }) => replies.droppedBytes === 6);
    stage.proxy.deliver();
    expect(client.text).toBe("");
  });
});

describe("hold", () => {
  test("held replies are kept, and delivered in order", async ({ stage, client, server }) => {
    stage.proxy.holdReplies();
    client.send("go");
    await server.receives("go");
    server.send("1");
    await stage.proxy.until(({ replies }) => replies.waitingBytes === 1);
    server.send("2");
    await stage.proxy.until(({ replies }) => replies.waitingBytes === 2);
    expect(client.text).toBe("");
    stage.proxy.deliver("replies");
    server.send("3");
    await client.receives("123");
  });

  test("a held request arrives although its sender has been killed meanwhile", async ({ stage, client, server }) => {
    stage.proxy.holdRequests();
    client.send("take the lock");
    await stage.proxy.until(({ requests }) => requests.waitingBytes === 13);
    client.socket.resetAndDestroy();
    await client.ends();
    expect(server.text).toBe("");
    await stage.proxy.heal();
    await server.receives("take the lock");
    expect(await server.ends()).toBeDefined();
  });
});

describe("refuse and cut", () => {
  test("refuse cuts what is open and refuses what comes, and heals on the same port", async ({ stage }) => {
    const { port } = stage.proxy;
    const { client, server } = await stage.pair();
    await stage.proxy.refuse();
    expect(await client.ends()).toBe("ECONNRESET");
    expect(await server.ends()).toBeDefined();
    expect(await (await stage.client()).ends()).toBe("ECONNREFUSED");
    await stage.proxy.heal();
    const again = await stage.pair();
    again.client.send("back");
    await again.server.receives("back");
    expect(stage.proxy.port).toBe(port);
  });

  test("a refusal that meets the port in any stage of its opening ends with a port that refuses", async ({ stage }) => {
    for (let round = 0; round < 20; round += 1) {
      await stage.proxy.refuse();
      void stage.proxy.heal();
      for (let turn = 0; turn < round; turn += 1) await undefined;
      const refused = stage.proxy.refuse();
      expect(["ECONNREFUSED", "ECONNRESET"]).toContain(await (await stage.client()).ends());
      await refused;
      expect(await (await stage.client()).ends()).toBe("ECONNREFUSED");
      await stage.proxy.heal();
      await stage.pair();
    }
  });

  test("stopped, it ends what is open, lets no connection in, and gives its port back once", async ({ stage, client, server }) => {
    await stage.proxy.stop();
    await stage.proxy.stop();
    expect([await client.ends(), await server.ends()]).toEqual(["ECONNRESET", expect.anything()]);
    expect(await (await stage.client()).ends()).toBe("ECONNREFUSED");
    const ports = await Promise.all(Array.from({ length: 100 }, takePort));
    expect(new Set(ports).size).toBe(100);
  });

  test("cutAfter lets exactly so many bytes of a reply pass", async ({ stage, client, server }) => {
    server.send("before ");
    await client.receives("before ");
    stage.proxy.cutAfter(4);
    server.send("12");
    server.send("3456789");
    await client.ends();
    expect(client.text).toBe("before 1234");
    await server.ends();
    await stage.proxy.heal();
    const again = await stage.pair();
    again.server.send("123456789");
    await again.client.receives("123456789");
  });

  test("cutAfter(0) lets the request arrive and ends the connection in place of the reply", async ({ stage }) => {
    stage.proxy.cutAfter(0, "replies");
    const { client, server } = await stage.pair();
    client.send("commit");
    await server.receives("commit");
    server.send("done");
    await client.ends();
    expect(client.text).toBe("");
  });

  test("cutAfter ends the connection when the last byte allowed has passed, and does not wait for one more", async ({ stage }) => {
    stage.proxy.cutAfter(3, "requests");
    const { client, server } = await stage.pair();
    client.send("abc");
    await server.ends();
    expect(server.text).toBe("abc");
    await client.ends();
  });
});
