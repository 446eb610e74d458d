// Under any faults a proxy never reorders, repeats or invents a byte, nor keeps more than it may.
import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import fc from "fast-check";
import { expect } from "vitest";
import type { FaultProxy } from "../../src/proxy/fault-proxy.js";
import { type End, test } from "./proxy-apparatus.js";

test("megabytes pass unchanged both ways at once", async ({ client, server }) => {
  const [up, down] = [randomBytes(4_000_000), randomBytes(4_000_000)];
  client.send(up);
  server.send(down);
  await server.until((end) => end.receivedBytes >= up.length, "all requests arrived");
  await client.until((end) => end.receivedBytes >= down.length, "all replies arrived");
  expect(server.received.equals(up)).toBe(true);
  expect(client.received.equals(down)).toBe(true);
});

// Far more than the kernel buffers between the sender and the proxy.
const flood = randomBytes(32_000_000);

/** Until the sender has got rid of no more bytes for a while. */
async function untilStuck({ socket }: End): Promise<void> {
  for (let [before, still] = [-1, 0]; still < 6; ) {
    still = socket.writableLength === before ? still + 1 : 0;
    before = socket.writableLength;
    await delay(20);
  }
}

test("a proxy that holds keeps a bounded number of bytes, and the sender feels it", async ({ stage, client, server }) => {
  stage.proxy.holdReplies();
  server.send(flood);
  await stage.proxy.until(({ replies }) => replies.waitingBytes > 0);
  await untilStuck(server);
  expect(server.socket.writableLength).toBeGreaterThan(0);
  expect(stage.proxy.traffic.replies.waitingBytes).toBeLessThan(2_000_000);
  await stage.proxy.heal();
  await client.until((end) => end.receivedBytes >= flood.length, "all of the flood arrived");
  expect(client.received.equals(flood)).toBe(true);
});

test("a receiver that does not read is felt by the sender, through the proxy", async ({ stage, client, server }) => {
  client.socket.pause();
  server.send(flood);
  await stage.proxy.until(({ replies }) => replies.passedBytes > 0);
  await untilStuck(server);
  expect(server.socket.writableLength).toBeGreaterThan(0);
  client.socket.resume();
  await client.until((end) => end.receivedBytes >= flood.length, "all of the flood arrived");
  expect(client.received.equals(flood)).toBe(true);
});

type Step = "send" | "slow" | "fast" | "hold" | "deliver" | "turn";
const steps = fc.array(fc.constantFrom<Step>("send", "send", "slow", "fast", "hold", "deliver", "turn"), { maxLength: 30 });

async function take(step: Step, proxy: FaultProxy): Promise<void> {
  if (step === "slow") proxy.slow(2);
  if (step === "fast") proxy.slow(0);
  if (step === "hold") proxy.holdRequests();
  if (step === "deliver") proxy.deliver();
  if (step === "turn") await new Promise(setImmediate);
}

test("delays and holds that come and go in any order leave the bytes in theirs", async ({ stage }) => {
  await fc.assert(
    fc.asyncProperty(steps, async (program) => {
      const { client, server } = await stage.pair();
      let sent = "";
      for (const [index, step] of program.entries()) {
        if (step === "send") {
          sent += `${index};`;
          client.send(`${index};`);
        } else await take(step, stage.proxy);
      }
      await stage.proxy.heal();
      await server.receives(sent);
      client.socket.destroy();
    }),
    { numRuns: 60 },
  );
});

test("lost bytes end a connection: what arrived is always the beginning of what was sent", async ({ stage }) => {
  await fc.assert(
    fc.asyncProperty(steps, fc.nat({ max: 30 }), async (program, lossAt) => {
      const { client, server } = await stage.pair();
      let sent = "";
      for (const [index, step] of program.entries()) {
        if (index === lossAt) stage.proxy.dropRequests();
        if (index === lossAt + 3) stage.proxy.deliver();
        if (step === "send" && client.socket.writable) {
          sent += `${index};`;
          client.send(`${index};`);
        } else await take(step, stage.proxy);
      }
      await stage.proxy.heal();
      client.socket.end();
      await server.ends();
      expect(sent.startsWith(server.text)).toBe(true);
      client.socket.destroy();
    }),
    { numRuns: 60 },
  );
});
