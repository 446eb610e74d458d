// One client of the soak, a program of its own: so many operations per second, drawn by chance, from several actors at once, and a reading of itself every few
// seconds. Failures that the world causes are counted by their code; any other ends it.
import { setTimeout as sleep } from "node:timers/promises";
import { GatewayError } from "@palisade/gateway/client";
import { LockError } from "@palisade/lock";
import { firstContact } from "../../harness/first-contact.js";
import { type ClientOrders, type ClientReading, type FromClient, type ToClient, timings } from "./client-words.js";
import { gatewayWork } from "./gateway-work.js";
import { leakOf } from "./leak.js";
import { lockWork } from "./lock-work.js";
import { readSelf, startProbe } from "./probe.js";
import { Tools } from "./tools-of-work.js";

const ACTORS = 12;
const orders = JSON.parse(process.argv[2] ?? "") as ClientOrders;
const tools = new Tools(orders);
const leaking = orders.leaks.map((leak) => leakOf(leak, tools));
const catalogue = Object.entries({ ...lockWork, ...gatewayWork });
const weights = catalogue.reduce((sum, [, [weight]]) => sum + weight, 0);

let operations: Record<string, number> = {};
let failures: Record<string, number> = {};
const underWay = new Set<{ readonly name: string; readonly at: string }>();
let isLeaving = false;
let work: Promise<unknown> = Promise.resolve();

function say(word: FromClient): void {
  process.send?.(word);
}

function tellReading(): void {
  const latencies = Object.fromEntries(
    timings.map((name) => [name, tools.latencies[name].take()]),
  ) as unknown as ClientReading["latencies"];
  say({ kind: "reading", self: readSelf(), waiting: tools.waiting, operations, failures, latencies });
  operations = {};
  failures = {};
}

function draw(): (typeof catalogue)[number] {
  let left = tools.chance.next() * weights;
  const drawn = catalogue.find(([, [weight]]) => {
    left -= weight;
    return left < 0;
  });
  return drawn ?? (catalogue[0] as (typeof catalogue)[number]);
}

async function operate(): Promise<void> {
  const [name, [, perform]] = draw();
  const operation = { name, at: new Date().toISOString() };
  underWay.add(operation);
  let code: unknown;
  try {
    code = await perform(tools);
  } catch (error) {
    if (!(error instanceof LockError || error instanceof GatewayError)) throw error;
    code = error.code;
  }
  underWay.delete(operation);
  operations[name] = (operations[name] ?? 0) + 1;
  if (typeof code === "string") failures[code] = (failures[code] ?? 0) + 1;
  for (const leak of leaking) leak();
}

/** Each at its own times; one that is late does not catch up. */
async function act(): Promise<void> {
  const gapMs = (1_000 * ACTORS) / orders.perSecond;
  let nextAt = performance.now();
  while (!isLeaving) {
    nextAt = Math.max(performance.now(), nextAt - gapMs * Math.log(1 - tools.chance.next()));
    await sleep(nextAt - performance.now());
    if (!isLeaving) await operate();
  }
}

async function leave(withinMs: number): Promise<void> {
  isLeaving = true;
  const impatience = setTimeout(() => {
    const unfinished = [...underWay].map(({ name, at }) => `${name} (since ${at})`);
    console.error(`not finished within ${withinMs} ms: ${unfinished.join(", ") || "the closing of the lock"}`);
    process.exit(1);
  }, withinMs);
  await work;
  await tools.locker.close();
  clearTimeout(impatience);
  process.disconnect();
  // The control keeps handles that would keep it.
  if (leaking.length > 0) process.exit();
}

process.on("message", (word: ToClient) => {
  if (word.kind === "leave") void leave(word.withinMs);
  else {
    work = Promise.all(Array.from({ length: ACTORS }, act));
    setInterval(tellReading, orders.readingEveryMs).unref();
  }
});
process.on("disconnect", () => process.exit());

startProbe();
await firstContact(tools.locker);
say({ kind: "ready" });
