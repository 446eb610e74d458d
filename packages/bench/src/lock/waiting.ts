// Whether everybody has a turn: one far away, or with dead subscriptions, or one that wants several
// locks at once, beside others; leases that run out; stopped ones in front; queues that drain.
import { connect, createServer, type Server, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { type RedisFleet, returnPort, takePort } from "@palisade/testkit";
import type { Contestant, Round } from "../measure/comparison.js";
import { nowUs } from "../measure/cpu.js";
import type { Context, Part } from "../measure/part.js";
import { sum } from "../measure/results.js";
import type { Turn } from "./client.js";
import { contend, HEAD_START_US, HOLD_MS } from "./handover.js";
import { countedBy, LockBench, type LockProcess, withBefore } from "./lock-bench.js";

export const waitingPart: Part = {
  name: "waiting",
  what: "the share of one that is far, deaf or wants several; leases that run out; stopped ones in front; queues that drain",
  from: "usual",
  async run(context) {
    await shares(context);
    await inQueues(context);
  },
};

let names = 0;

/** Each condition is a contestant; with another checkout beside this one, two. */
async function under<Condition>(
  context: Context,
  conditions: Readonly<Record<string, Condition>>,
  enter: (key: string, condition: Condition) => Promise<Contestant>,
): Promise<readonly Contestant[]> {
  const contestants: Contestant[] = [];
  for (const [name, condition] of Object.entries(conditions)) {
    for (const key of withBefore(["palisade"], context)) {
      const contestant = await enter(key, condition);
      contestants.push({ ...contestant, name: `${contestant.name}, ${name}` });
    }
  }
  return contestants;
}

type Wants = readonly (string | readonly string[])[];

interface Crowd {
  readonly ones: readonly Wants[];
  readonly others: readonly Wants[];
  /** Of the ones, there and back. */
  readonly awayMs?: number;
  readonly isDeaf?: boolean;
}

const five = { ones: [["a"]], others: [["a"], ["a"], ["a"], ["a"]] };
const sets = [["a", "b"], ["b", "c"], ["a", "c"], "abc".split("")];
const crowds: Readonly<Record<string, Crowd>> = {
  "one of five": five,
  "one 60 ms away beside four": { ...five, awayMs: 60 },
  "one 120 ms away beside four": { ...five, awayMs: 120 },
  "one 200 ms away beside four": { ...five, awayMs: 200 },
  "one with dead subscriptions beside four": { ...five, isDeaf: true },
  "{a,b} beside 2 + 2": { ones: [[["a", "b"]]], others: [["a"], ["a"], ["b"], ["b"]] },
  "{a,b,c} beside 2 + 2 + 2": { ones: [["abc".split("")]], others: [["a"], ["a"], ["b"], ["b"], ["c"], ["c"]] },
  "three of random sets beside three of random single ones": { ones: [sets, sets, sets], others: [0, 1, 2].map(() => ["a", "b", "c"]) },
};

async function shares(context: Context): Promise<void> {
  context.progress.begin("Shares of those that wait");
  await using bench = await LockBench.start(context, { nodes: 3 });
  const [ones, others] = [bench.processes(3), bench.processes(6)];
  for (const key of withBefore(["palisade"], context)) await bench.open([...ones, ...others], key);
  await context.compare({
    id: "waiting/shares",
    title: "Shares of those that wait",
    remark: `processes that want it over and over and hold it for ${HOLD_MS} ms; p50 and p99 are waits of the one, or of the three; overtaken: by one and the same other that asked when the nodes had heard of it, how often per lease`,
    effort: context.effort({ rounds: 3, seconds: 3 }),
    contestants: await under(context, crowds, async (key, crowd) => {
      const as = `${key} ${++names}`;
      const box = crowd.isDeaf ? context.use(await MiddleBox.inFrontOf(bench.fleet)) : undefined;
      await bench.open(ones.slice(0, crowd.ones.length), key, { as, urls: box?.urls ?? (await waysOf(bench.fleet, crowd.awayMs)) });
      const contenders = [
        ...crowd.ones.map((wants, i) => ({ process: ones[i] as LockProcess, key: as, wants })),
        ...crowd.others.map((wants, i) => ({ process: others[i] as LockProcess, key, wants })),
      ];
      const round = async (seconds: number): Promise<Round> => {
        const result = await share(contenders, crowd, seconds);
        // Once, behind the first round.
        box?.deafen();
        return result;
      };
      return bench.contestant(key, [...ones, ...others], round);
    }),
    columns: [
      { key: "leases", title: "leases of the one", digits: 0 },
      { key: "otherLeases", title: "of each other", digits: 0 },
      { key: "overtaken", title: "overtaken", digits: 2 },
      { key: "longestUs", title: "longest wait µs", digits: 0 },
      { key: "otherLongestUs", title: "of the others µs", digits: 0 },
    ],
    compared: "perSecond",
    warmUp: "one round",
  });
}

async function waysOf(fleet: RedisFleet, awayMs = 0): Promise<readonly string[]> {
  if (awayMs === 0) return fleet.nodes.map(({ directUrl }) => directUrl);
  const { proxies, urls } = await fleet.anotherWay();
  for (const proxy of proxies) proxy.slow(awayMs / 2);
  return urls;
}

async function share(
  contenders: Parameters<typeof contend>[0],
  { ones: { length: ones }, awayMs = 0 }: Crowd,
  seconds: number,
): Promise<Round> {
  const round = ++names;
  const named = ({ wants, ...rest }: (typeof contenders)[number]) => ({
    ...rest,
    wants: wants.map((set) => [set].flat().map((name) => `${name}/${round}`)),
  });
  const { turns, untilUs } = await contend(contenders.map(named), seconds);
  // The last turn of each was waited for until the end, at least.
  const all = turns.map((list) => list.map((turn) => ({ ...turn, acquiredUs: Math.min(turn.acquiredUs, untilUs) })));
  const [mine, theirs] = [all.slice(0, ones), all.slice(ones)];
  const leases = (lists: readonly (readonly Turn[])[]): number => sum(lists.map((list) => list.length - 1));
  const waits = (lists: readonly (readonly Turn[])[]): readonly number[] => lists.flat().map((turn) => turn.acquiredUs - turn.askedUs);
  return {
    operations: leases(all),
    seconds,
    latenciesUs: waits(mine),
    figures: {
      leases: leases(mine) / ones,
      otherLeases: leases(theirs) / theirs.length,
      overtaken: Math.max(...mine.flatMap((list) => all.map((other) => overtaken(list, other, 500 * awayMs)))),
      longestUs: Math.max(...waits(mine)),
      otherLongestUs: Math.max(...waits(theirs)),
    },
  };
}

/** How often per turn of the one the other asked for some of the same when nodes had heard of it, and had it earlier. */
function overtaken(one: readonly Turn[], other: readonly Turn[], heardAfterUs: number): number {
  const isBefore = (a: Turn, b: Turn): boolean =>
    a.askedUs > b.askedUs + heardAfterUs && a.acquiredUs < b.acquiredUs && a.wanted.some((name) => b.wanted.includes(name));
  return sum(one.map((turn) => other.filter((another) => isBefore(another, turn)).length)) / one.length;
}

/** Passes everything on until it makes subscriptions deaf: they stay open, and nothing comes through. */
class MiddleBox implements AsyncDisposable {
  readonly urls: readonly string[];
  readonly #servers: readonly Server[];
  readonly #sockets = new Set<Socket>();
  readonly #subscribed = new Set<Socket>();
  readonly #deaf = new Set<Socket>();

  static async inFrontOf(fleet: RedisFleet): Promise<MiddleBox> {
    return new MiddleBox(await Promise.all(fleet.nodes.map(async ({ directUrl }) => [new URL(directUrl), await takePort()] as const)));
  }

  private constructor(ways: readonly (readonly [to: URL, port: number])[]) {
    this.urls = ways.map(([, port]) => `redis://127.0.0.1:${port}`);
    this.#servers = ways.map(([to, port]) => createServer((client) => this.#pass(client, to)).listen(port, "127.0.0.1"));
  }

  deafen(): void {
    for (const client of this.#subscribed) this.#deaf.add(client);
  }

  #pass(client: Socket, { hostname, port }: URL): void {
    const server = connect(Number(port), hostname);
    client.on("data", (bytes) => {
      if (/subscribe/i.test(bytes.toString("latin1"))) this.#subscribed.add(client);
      if (!this.#deaf.has(client)) server.write(bytes);
    });
    server.on("data", (bytes) => this.#deaf.has(client) || client.write(bytes));
    for (const socket of [client, server]) {
      this.#sockets.add(socket.setNoDelay(true));
      socket.on("error", () => {}).on("close", () => (socket === client ? server : client).destroy());
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const server of this.#servers) server.close();
    for (const socket of this.#sockets) socket.destroy();
    for (const url of this.urls) returnPort(Number(new URL(url).port));
  }
}

interface Queue {
  readonly nodes?: number;
  /** In all, shared out among the processes that run. */
  readonly waiters?: number;
  /** Of one process more, which is stopped. */
  readonly inFront?: number;
  /** Nobody releases. */
  readonly runsOutMs?: number;
}

const queues: Readonly<Record<string, Readonly<Record<string, Queue>>>> = {
  "A queue that drains": { "16 waiters": { waiters: 16 }, "1 000 waiters": { waiters: 1_000 } },
  "Stopped ones in front": Object.fromEntries([1, 2, 3, 100].map((inFront) => [`${inFront} in front of 4`, { inFront }])),
  "Leases that run out": Object.fromEntries([1, 3, 5].map((nodes) => [`nodes: ${nodes}`, { nodes, waiters: 12, runsOutMs: 300 }])),
};

const PROCESSES = 4;
/** Apart from each other: who asks in the same turn of an event loop has no order. */
const ASK_EVERY_US = 2_000;
/** Until those that ask have been refused, and have their places. */
const PLACED_MS = 300;

async function inQueues(context: Context): Promise<void> {
  for (const [title, conditions] of Object.entries(queues)) {
    context.progress.begin(title);
    const opened: LockBench[] = [];
    try {
      await context.compare({
        id: `waiting/${title.toLowerCase().replaceAll(" ", "-")}`,
        title,
        remark: `lockers in ${PROCESSES} processes that ask once and give back at once; stopped: before them those of one that is stopped (SIGSTOP); p50 and p99 from the call of release, or the end of a lease, to the next; out of order: behind how many that asked more than ${ASK_EVERY_US / 1_000} ms later`,
        effort: context.effort({ rounds: 3, seconds: 1 }),
        contestants: await under(context, conditions, async (key, queue) => {
          const bench = await LockBench.start(context, { nodes: queue.nodes ?? 3 });
          opened.push(bench);
          return await queued(bench, key, { ...queue, waiters: Math.max(PROCESSES, context.count(queue.waiters ?? PROCESSES)) });
        }),
        columns: [
          { key: "outOfOrder", title: "out of order", digits: 0 },
          { key: "calls", title: "calls per lease and node", digits: 1 },
          { key: "callUs", title: "a node's µs per call", digits: 0 },
        ],
        compared: "p50Us",
        warmUp: "one round",
      });
    } finally {
      for (const bench of opened) await bench[Symbol.asyncDispose]();
    }
  }
}

async function queued(bench: LockBench, key: string, queue: Queue & { readonly waiters: number }): Promise<Contestant> {
  const { waiters, inFront = 0, runsOutMs } = queue;
  const own = bench.processes(PROCESSES);
  const [holder] = bench.processes(1) as [LockProcess];
  // Only where it is measured does a lease run out.
  const settings = { ttlMs: runsOutMs ?? 300_000 };
  await bench.open([holder], key, settings);
  await bench.open(own, key, { ...settings, lockers: Math.ceil(waiters / PROCESSES) });
  return bench.contestant(key, own, async (): Promise<Round> => {
    const resource = `queue/${++names}`;
    const resources = runsOutMs === undefined ? [resource] : [];
    await holder.ask({ kind: "hold", key, resources });
    const still = inFront === 0 ? [] : bench.processes(1);
    await bench.open(still, key, { ...settings, lockers: inFront });
    const line = { kind: "line" as const, key, resource, runsOut: runsOutMs !== undefined };
    // It is killed before it is its turn.
    for (const one of still) one.ask({ ...line, fromUs: nowUs(), everyUs: ASK_EVERY_US }).catch(() => {});
    await sleep(inFront === 0 ? 0 : PLACED_MS + (inFront * ASK_EVERY_US) / 1_000);
    const fromUs = nowUs() + HEAD_START_US;
    const everyUs = PROCESSES * ASK_EVERY_US;
    const lines = own.map((one, i) => one.ask<readonly Turn[]>({ ...line, fromUs: fromUs + i * ASK_EVERY_US, everyUs }));
    await sleep(PLACED_MS + (waiters * ASK_EVERY_US) / 1_000);
    for (const { pid } of still) process.kill(pid, "SIGSTOP");
    const scripts = () => countedBy(bench.fleet, "commandstats", /cmdstat_evalsha:calls=(\d+),usec=(\d+)/);
    const [callsBefore = 0, usBefore = 0] = await scripts();
    const releasedUs = await holder.ask<number>({ kind: "release", resources });
    const turns = (await Promise.all(lines)).flat().sort((a, b) => a.acquiredUs - b.acquiredUs);
    const [callsAfter = 0, usAfter = 0] = await scripts();
    for (const one of still) await one.kill();
    const endsUs = [releasedUs, ...turns.map((turn) => turn.releasedUs + (runsOutMs ?? 0) * 1_000)];
    const gapsUs = turns.map(({ acquiredUs }, i) => acquiredUs - (endsUs[i] ?? Number.NaN));
    const overtakers = ({ askedUs }: Turn, place: number): number =>
      turns.slice(0, place).filter((other) => other.askedUs > askedUs + ASK_EVERY_US).length;
    return {
      operations: turns.length,
      seconds: ((turns.at(-1)?.acquiredUs ?? Number.NaN) - releasedUs) / 1_000_000,
      latenciesUs: inFront > 0 ? gapsUs.slice(0, 1) : gapsUs.slice(1),
      figures: {
        outOfOrder: Math.max(...turns.map(overtakers)),
        calls: (callsAfter - callsBefore) / turns.length / bench.fleet.nodes.length,
        callUs: (usAfter - usBefore) / (callsAfter - callsBefore),
      },
    };
  });
}
