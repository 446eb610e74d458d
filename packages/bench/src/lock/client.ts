// A process that uses one lock library, as the benchmark asks it to. A program of its own.
import { setTimeout as sleep } from "node:timers/promises";
import { answerParent } from "@palisade/testkit";
import type { Round } from "../measure/comparison.js";
import { nowUs } from "../measure/cpu.js";
import { byKey, type Held, type Lock, type Settings } from "./libraries.js";

export interface Turn {
  readonly wanted: readonly string[];
  readonly askedUs: number;
  /** False: it gave up at `acquiredUs`. */
  readonly isAcquired: boolean;
  readonly acquiredUs: number;
  readonly releasedUs: number;
}

export type Ask =
  | Open
  /** Acquires and releases what nobody else wants. */
  | { readonly kind: "load"; readonly key: string; readonly seconds: number; readonly atOnce: number; readonly names: Names }
  /** Acquires and releases what others want, too. */
  | Contend
  /** Each of its lockers asks once, one after the other, and gives back at once what it is given. */
  | Line
  /** Acquires all of them and keeps them, until "release". */
  | { readonly kind: "hold"; readonly key: string; readonly resources: readonly string[] }
  | { readonly kind: "release"; readonly resources: readonly string[] }
  /** Answers when it was acquired, and releases it. */
  | { readonly kind: "await"; readonly key: string; readonly resources: readonly string[] }
  | { readonly kind: "close" };

interface Open extends Opening {
  readonly kind: "open";
  readonly key: string;
  readonly urls: readonly string[];
  readonly settings: Settings;
}

/** How many lockers, and under which key they are asked for in place of the library's. */
export interface Opening {
  readonly lockers?: number | undefined;
  readonly as?: string | undefined;
}

interface Contend {
  readonly kind: "contend";
  readonly key: string;
  /** One of these each time, drawn by chance. */
  readonly wants: readonly (string | readonly string[])[];
  readonly fromUs: number;
  readonly untilUs: number;
  readonly holdMs: number;
}

interface Line {
  readonly kind: "line";
  readonly key: string;
  readonly resource: string;
  readonly fromUs: number;
  readonly everyUs: number;
  /** The lease is not given back. */
  readonly runsOut?: boolean;
}

/** "reused": each caller has its own name; "fresh": every name is locked for the first time; "hot": all have one, and hold it. */
export type Names = "reused" | "fresh" | "hot";

const HOT_MS = 1;

/** Enough to fill the pipe without a burst that one node could take for a stall. */
const HOLDS_AT_ONCE = 256;

const locks = new Map<string, readonly [Lock, ...Lock[]]>();
const held = new Map<string, Held>();
let names = 0;

function locksOf(key: string): readonly [Lock, ...Lock[]] {
  const opened = locks.get(key);
  if (opened === undefined) throw new Error(`${key} was not opened`);
  return opened;
}

const lockOf = (key: string): Lock => locksOf(key)[0];

async function open({ key, urls, settings, lockers = 1, as = key }: Open): Promise<void> {
  const another = (): Promise<Lock> => byKey(key).library.open(urls, settings);
  const first = await another();
  locks.set(as, [first, ...(await Promise.all(Array.from({ length: lockers - 1 }, another)))]);
}

async function until(us: number): Promise<void> {
  await sleep(Math.max(0, (us - nowUs()) / 1_000));
}

async function load({ key, seconds, atOnce, names: kind }: Extract<Ask, { kind: "load" }>): Promise<Round> {
  const lock = lockOf(key);
  const latenciesUs: number[] = [];
  const startedAt = performance.now();
  const until = startedAt + seconds * 1_000;
  const caller = async (own: string): Promise<void> => {
    let at = performance.now();
    // Once at least, if this process was kept waiting.
    do {
      const resource = kind === "fresh" ? `fresh/${process.pid}/${names++}` : own;
      const lease = await lock.acquire(resource);
      if (kind === "hot") await sleep(HOT_MS);
      await lease.release();
      const endedAt = performance.now();
      latenciesUs.push(Math.round((endedAt - at) * 10_000) / 10);
      at = endedAt;
    } while (at < until);
  };
  await Promise.all(Array.from({ length: atOnce }, (_, index) => caller(`bench/${key}/${process.pid}/${kind === "hot" ? 0 : index}`)));
  return { operations: latenciesUs.length, seconds: (performance.now() - startedAt) / 1_000, latenciesUs };
}

async function contend({ key, wants, fromUs, untilUs, holdMs }: Contend): Promise<readonly Turn[]> {
  const lock = lockOf(key);
  const turns: Turn[] = [];
  await until(fromUs);
  for (let askedUs = nowUs(); askedUs < untilUs; askedUs = nowUs()) {
    const wanted = wants[Math.floor(Math.random() * wants.length)] ?? [];
    const lease = await lock.acquire(wanted).catch(() => undefined);
    const acquiredUs = nowUs();
    if (lease !== undefined && acquiredUs < untilUs) await sleep(holdMs);
    const releasedUs = nowUs();
    await lease?.release();
    turns.push({ wanted: [wanted].flat(), askedUs, isAcquired: lease !== undefined, acquiredUs, releasedUs });
  }
  return turns;
}

function line({ key, resource, fromUs, everyUs, runsOut = false }: Line): Promise<readonly Turn[]> {
  const turn = async (lock: Lock, place: number): Promise<Turn> => {
    await until(fromUs + place * everyUs);
    const askedUs = nowUs();
    const lease = await lock.acquire(resource);
    const acquiredUs = nowUs();
    if (!runsOut) await lease.release();
    return { wanted: [resource], askedUs, isAcquired: true, acquiredUs, releasedUs: nowUs() };
  };
  return Promise.all(locksOf(key).map(turn));
}

async function hold(key: string, resources: readonly string[]): Promise<void> {
  const lock = lockOf(key);
  let next = 0;
  const caller = async (): Promise<void> => {
    for (let resource = resources[next++]; resource !== undefined; resource = resources[next++])
      held.set(resource, await lock.acquire(resource));
  };
  await Promise.all(Array.from({ length: HOLDS_AT_ONCE }, caller));
}

/** When it began. */
async function release(resources: readonly string[]): Promise<number> {
  const startedUs = nowUs();
  await Promise.all(
    resources.map(async (resource) => {
      await held.get(resource)?.release();
      held.delete(resource);
    }),
  );
  return startedUs;
}

async function acquiredUs(key: string, resource: string): Promise<number> {
  const lease = await lockOf(key).acquire(resource);
  const at = nowUs();
  await lease.release();
  return at;
}

answerParent<Ask>(async (ask) => {
  if (ask.kind === "open") await open(ask);
  else if (ask.kind === "load") return load(ask);
  else if (ask.kind === "contend") return contend(ask);
  else if (ask.kind === "line") return line(ask);
  else if (ask.kind === "hold") await hold(ask.key, ask.resources);
  else if (ask.kind === "release") return release(ask.resources);
  else if (ask.kind === "await") return Promise.all(ask.resources.map((resource) => acquiredUs(ask.key, resource)));
  else await Promise.all([...locks.values()].flat().map((lock) => lock.close()));
  return undefined;
});
