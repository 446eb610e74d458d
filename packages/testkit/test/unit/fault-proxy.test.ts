// Every fault of the proxy does what its name says, to both ends of a connection, and heals. Under
// any faults it never reorders, repeats or invents a byte, nor keeps more than it may.
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import fc from "fast-check";
import { test as base, expect } from "vitest";
import { FaultProxy, reset } from "../../src/proxy/fault-proxy.js";

const patient = { timeout: 30_000, interval: 1 };

/** One end of a connection. */
class End {
  readonly socket: Socket;
  readonly #chunks: Buffer[] = [];
  receivedBytes = 0;
  /** How it ended: "end" if the other side ended it, or the error's code; undefined while open. */
  ending: string | undefined;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on("data", (bytes: Buffer) => {
      this.#chunks.push(bytes);
      this.receivedBytes += bytes.length;
    });
    const ends = (how: string): void => {
      this.ending ??= how;
    };
    socket.on("end", () => ends("end"));
    socket.on("error", (cause: NodeJS.ErrnoException) => ends(cause.code ?? cause.message));
    socket.on("close", () => ends("closed"));
  }

  get received(): Buffer {
    return Buffer.concat(this.#chunks);
  }

  send(data: string | Buffer): void {
    this.socket.write(data);
  }

  async receives(text: string): Promise<void> {
    await expect.poll(() => String(this.received), patient).toBe(text);
  }

  async ends(): Promise<string> {
    await expect.poll(() => this.ending, patient).toBeDefined();
    return this.ending ?? "";
  }
}

/** A server behind a proxy, and as many clients as a test opens. */
class Stage {
  readonly proxy: FaultProxy;
  readonly server: Server;
  /** The server's ends, in the order of the connections. */
  readonly served: End[] = [];
  readonly #clients: End[] = [];

  private constructor(proxy: FaultProxy, server: Server) {
    this.proxy = proxy;
    this.server = server;
    server.on("connection", (socket: Socket) => this.served.push(new End(socket)));
  }

  static async open(): Promise<Stage> {
    const server = createServer({ allowHalfOpen: true }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const proxy = await FaultProxy.start({ upstream: { host: "127.0.0.1", port: (server.address() as AddressInfo).port } });
    return new Stage(proxy, server);
  }

  /** A client's end; connected as far as it can tell. */
  async client(): Promise<End> {
    const socket = connect({ host: "127.0.0.1", port: this.proxy.port, allowHalfOpen: true, noDelay: true });
    const end = new End(socket);
    this.#clients.push(end);
    await new Promise((resolve) => socket.once("connect", resolve).once("error", resolve));
    return end;
  }

  /** A client and the server's end of the same connection. */
  async pair(): Promise<{ client: End; server: End }> {
    const before = this.served.length;
    const client = await this.client();
    while (this.served.length === before) await delay(1);
    return { client, server: this.served[before] as End };
  }

  async expectPassing(): Promise<void> {
    const { client, server } = await this.pair();
    client.send("a request");
    await server.receives("a request");
    server.send("a reply");
    await client.receives("a reply");
  }

  async close(): Promise<void> {
    await this.proxy.stop();
    for (const end of [...this.#clients, ...this.served]) end.socket.destroy();
    this.server.close();
  }
}

const test = base
  .extend("stage", async ({ task: _test }, { onCleanup }): Promise<Stage> => {
    const stage = await Stage.open();
    onCleanup(() => stage.close());
    return stage;
  })
  .extend("pair", ({ stage }) => stage.pair())
  .extend("client", ({ pair }): End => pair.client)
  .extend("server", ({ pair }): End => pair.server);

test("without a fault megabytes pass both ways at once, and one side may end while the other still talks", async ({
  stage,
  client,
  server,
}) => {
  const [up, down] = [randomBytes(4_000_000), randomBytes(4_000_000)];
  client.socket.end(up);
  server.send(down);
  expect(await server.ends()).toBe("end");
  expect(server.received.equals(up)).toBe(true);
  server.socket.end();
  expect(await client.ends()).toBe("end");
  expect(client.received.equals(down)).toBe(true);
  await stage.proxy.until(() => stage.proxy.connections === 0);
});

test("a reset on one side is a reset on the other", async ({ client, server }) => {
  server.socket.resetAndDestroy();
  expect(await client.ends()).toBe("ECONNRESET");
});

test("partition: nothing passes either way, both ends stay open, and a new connection hangs", async ({ stage, client, server }) => {
  stage.proxy.partition();
  client.send("request");
  server.send("reply");
  const late = await stage.client();
  late.send("anybody?");
  await stage.proxy.until(({ requests, replies }) => requests.droppedBytes === 15 && replies.droppedBytes === 5);
  expect([client, server, late].map((end) => [String(end.received), end.ending])).toEqual(Array(3).fill(["", undefined]));
  expect(stage.served.length).toBe(1);
});

test("partition: the end of a server is not heard on the other side until it heals", async ({ stage, client, server }) => {
  stage.proxy.partition();
  server.socket.resetAndDestroy();
  stage.server.close();
  await stage.proxy.serverDown();
  const late = await stage.client();
  late.send("x");
  await stage.proxy.until(({ requests }) => requests.droppedBytes === 1);
  expect([client.ending, late.ending]).toEqual([undefined, undefined]);
  await stage.proxy.heal();
  expect(await client.ends()).not.toBe("");
  expect(await (await stage.client()).ends()).toBe("ECONNREFUSED");
});

test("partition: healed, a connection that lost bytes is cut, and one that lost none goes on", async ({ stage }) => {
  const talker = await stage.pair();
  const silent = await stage.pair();
  stage.proxy.partition();
  const hanging = await stage.client();
  talker.client.send("lost");
  await stage.proxy.until(({ requests }) => requests.droppedBytes === 4);
  await stage.proxy.heal();
  await talker.client.ends();
  await talker.server.ends();
  silent.client.send("still here");
  await silent.server.receives("still here");
  hanging.send("at last");
  await stage.proxy.until(({ requests }) => requests.passedBytes === 17);
  expect(stage.served.at(-1)?.ending).toBeUndefined();
});

test("slow: every chunk takes the delay, each way, and order is kept", async ({ stage, client, server }) => {
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

test("drop: the request arrives and the reply vanishes, with all that follows, so that no gap is seen", async ({
  stage,
  client,
  server,
}) => {
  stage.proxy.dropReplies();
  client.send("write");
  await server.receives("write");
  server.send("written");
  await stage.proxy.until(({ replies }) => replies.droppedBytes === 7);
  stage.proxy.holdReplies();
  server.send("two");
  await stage.proxy.until(({ replies }) => replies.droppedBytes === 10);
  stage.proxy.deliver();
  expect([String(client.received), client.ending]).toEqual(["", undefined]);
  await stage.proxy.heal();
  await client.ends();
  await stage.expectPassing();
});

test("hold: replies are kept, and delivered in order", async ({ stage, client, server }) => {
  stage.proxy.holdReplies();
  client.send("go");
  await server.receives("go");
  server.send("1");
  await stage.proxy.until(({ replies }) => replies.waitingBytes === 1);
  server.send("2");
  await stage.proxy.until(({ replies }) => replies.waitingBytes === 2);
  expect(String(client.received)).toBe("");
  stage.proxy.deliver("replies");
  server.send("3");
  await client.receives("123");
});

test("hold: a request arrives although its sender has been killed meanwhile", async ({ stage, client, server }) => {
  stage.proxy.holdRequests();
  client.send("take the lock");
  await stage.proxy.until(({ requests }) => requests.waitingBytes === 13);
  client.socket.resetAndDestroy();
  await client.ends();
  expect(String(server.received)).toBe("");
  await stage.proxy.heal();
  await server.receives("take the lock");
  await server.ends();
});

// Far more than the kernel buffers between the sender and the proxy.
const flood = randomBytes(32_000_000);

test.for(["a proxy that holds", "a receiver that does not read"])(
  "%s is felt by the sender, and a bounded number of bytes waits in the proxy",
  async (who, { stage, client, server }) => {
    if (who === "a proxy that holds") stage.proxy.holdReplies();
    else client.socket.pause();
    server.send(flood);
    // Until the sender has got rid of no more bytes for a while.
    for (let [before, still] = [-1, 0]; still < 6; before = server.socket.writableLength) {
      await delay(20);
      still = server.socket.writableLength === before ? still + 1 : 0;
    }
    expect(server.socket.writableLength).toBeGreaterThan(0);
    expect(stage.proxy.traffic.replies.waitingBytes).toBeLessThan(2_000_000);
    await stage.proxy.heal();
    client.socket.resume();
    await expect.poll(() => client.receivedBytes, patient).toBe(flood.length);
    expect(client.received.equals(flood)).toBe(true);
  },
);

test("refuse cuts what is open and refuses what comes, and heals on the same port", async ({ stage, client, server }) => {
  const { port } = stage.proxy;
  await stage.proxy.refuse();
  expect(await client.ends()).toBe("ECONNRESET");
  await server.ends();
  expect(await (await stage.client()).ends()).toBe("ECONNREFUSED");
  await stage.proxy.heal();
  await stage.expectPassing();
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

test("stopped, it ends what is open and lets no connection in", async ({ stage, client, server }) => {
  await stage.proxy.stop();
  await stage.proxy.stop();
  expect([await client.ends(), await server.ends()]).toEqual(["ECONNRESET", expect.anything()]);
  expect(await (await stage.client()).ends()).toBe("ECONNREFUSED");
});

test.for([
  ["123456789", 4, "1234"],
  ["123456789", 0, ""],
  ["123", 3, "123"],
] as const)(
  "cutAfter: of the reply %s %i bytes pass, and the connection ends then",
  async ([reply, bytes, passed], { stage, client, server }) => {
    server.send("before ");
    await client.receives("before ");
    stage.proxy.cutAfter(bytes);
    client.send("commit");
    await server.receives("commit");
    server.send(reply.slice(0, 2));
    server.send(reply.slice(2));
    await client.ends();
    expect(String(client.received)).toBe(`before ${passed}`);
    await server.ends();
    await stage.proxy.heal();
    await stage.expectPassing();
  },
);

const steps = fc.array(fc.constantFrom("send", "send", "slow", "fast", "hold", "deliver", "turn"), { maxLength: 30 });

test("faults that come and go in any order leave the bytes in theirs; lost bytes leave the beginning of what was sent", async ({
  stage,
}) => {
  await fc.assert(
    fc.asyncProperty(steps, fc.option(fc.nat({ max: 30 })), async (program, lossAt) => {
      const { proxy } = stage;
      const { client, server } = await stage.pair();
      let sent = "";
      for (const [index, step] of program.entries()) {
        if (index === lossAt) proxy.dropRequests();
        if (lossAt !== null && index === lossAt + 3) proxy.deliver();
        if (step === "send") {
          sent += `${index};`;
          client.send(`${index};`);
        } else if (step === "slow") proxy.slow(2);
        else if (step === "fast") proxy.slow(0);
        else if (step === "hold") proxy.holdRequests();
        else if (step === "deliver") proxy.deliver();
        else await new Promise(setImmediate);
      }
      await proxy.heal();
      if (lossAt === null) await server.receives(sent);
      client.socket.end();
      await server.ends();
      expect(sent.startsWith(String(server.received))).toBe(true);
      client.socket.destroy();
    }),
    { numRuns: 120 },
  );
});

// One left open would keep its process from exiting.
test.for(["connecting", "open", "ending", "ended"])("a reset closes a socket that is %s", async (state) => {
  // It may see the reset.
  const server = createServer({ allowHalfOpen: true }, (peer) => peer.on("error", () => {}));
  await once(server.listen(0, "127.0.0.1"), "listening");
  const socket = connect({ port: (server.address() as AddressInfo).port, host: "127.0.0.1", allowHalfOpen: true });
  if (state !== "connecting") await once(socket, "connect");
  if (state.startsWith("end")) socket.end();
  if (state === "ended") await once(socket, "finish");
  const closed = once(socket, "close"); // Rejects on an error.
  reset(socket);
  await closed;
  server.close();
});
