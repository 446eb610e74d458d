// A process that uses one lock library, as the benchmark asks it to. A program of its own.
import { subscribe } from "node:diagnostics_channel";
import { setTimeout as sleep } from "node:timers/promises";
import { channelNames } from "@palisade/lock";
import { answerParent } from "@palisade/testkit";
import type { Round } from "../measure/comparison.js";
import { nowUs } from "../measure/cpu.js";
import { byKey, type Held, type Lock, type Settings } from "./libraries.js";

export interface Turn {
  readonly askedUs: number;
  /** False: it gave up at `acquiredUs`. */
  readonly isAcquired: boolean;
  readonly acquiredUs: number;
  readonly releasedUs: number;
}

export type Ask =
  | { readonly kind: "open"; readonly key: string; readonly urls: readonly string[]; readonly settings: Settings }
  /** Acquires and releases what nobody else wants. */
  | { readonly kind: "load"; readonly key: string; readonly seconds: number; readonly atOnce: number; readonly names: Names }
  /** The same, and the share of leases that took a second round. */
  | { readonly kind: "watch"; readonly key: string; readonly seconds: number; readonly atOnce: number; readonly names: Names }
  /** Acquires and releases what others want, too. */
  | Contend
  /** Acquires all of them and keeps them, until "release". */
  | { readonly kind: "hold"; readonly key: string; readonly resources: readonly string[] }
  | { readonly kind: "release"; readonly resources: readonly string[] }
  /** Answers when it was acquired, and releases it. */
  | { readonly kind: "await"; readonly key: string; readonly resources: readonly string[] }
  | { readonly kind: "close" };

interface Contend {
  readonly kind: "contend";
  readonly key: string;
  readonly resource: string;
  readonly fromUs: number;
  readonly untilUs: number;
  readonly holdMs: number;
}

/** "reused": each caller has its own name; "fresh": every name is locked for the first time. */
export type Names = "reused" | "fresh";

/** Enough to fill the pipe without a burst that one node could take for a stall. */
const HOLDS_AT_ONCE = 256;

const locks = new Map<string, Lock>();
const held = new Map<string, Held>();
let names = 0;

function lockOf(key: string): Lock {
  const lock = locks.get(key);
  if (lock === undefined) throw new Error(`${key} was not opened`);
  return lock;
}

async function load({ key, seconds, atOnce, names: kind }: Extract<Ask, { kind: "load" | "watch" }>): Promise<Round> {
  const lock = lockOf(key);
  const latenciesUs: number[] = [];
  const startedAt = performance.now();
  const until = startedAt + seconds * 1_000;
  const caller = async (own: string): Promise<void> => {
    let at = performance.now();
    // Once at least, if this process was kept waiting.
    do {
      const resource = kind === "reused" ? own : `fresh/${process.pid}/${names++}`;
      await (await lock.acquire(resource)).release();
      const endedAt = performance.now();
      latenciesUs.push(Math.round((endedAt - at) * 10_000) / 10);
      at = endedAt;
    } while (at < until);
  };
  await Promise.all(Array.from({ length: atOnce }, (_, index) => caller(`bench/${key}/${process.pid}/${index}`)));
  return { operations: latenciesUs.length, seconds: (performance.now() - startedAt) / 1_000, latenciesUs };
}

async function watch(ask: Extract<Ask, { kind: "watch" }>): Promise<number> {
  let [won, second] = [0, 0];
  subscribe(channelNames.attempt, (event) => {
    const { outcome, rounds } = event as { readonly outcome: string; readonly rounds: number };
    if (outcome === "won") won += 1;
    if (outcome === "won" && rounds > 1) second += 1;
  });
  await load(ask);
  return second / Math.max(1, won);
}

async function contend({ key, resource, fromUs, untilUs, holdMs }: Contend): Promise<readonly Turn[]> {
  const lock = lockOf(key);
  const turns: Turn[] = [];
  await sleep(Math.max(0, (fromUs - nowUs()) / 1_000));
  for (let askedUs = nowUs(); askedUs < untilUs; askedUs = nowUs()) {
    const lease = await lock.acquire(resource).catch(() => undefined);
    const acquiredUs = nowUs();
    if (lease !== undefined && acquiredUs < untilUs) await sleep(holdMs);
    const releasedUs = nowUs();
    await lease?.release();
    turns.push({ askedUs, isAcquired: lease !== undefined, acquiredUs, releasedUs });
  }
  return turns;
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
  if (ask.kind === "open") locks.set(ask.key, await byKey(ask.key).library.open(ask.urls, ask.settings));
  else if (ask.kind === "load") return load(ask);
  else if (ask.kind === "watch") return watch(ask);
  else if (ask.kind === "contend") return contend(ask);
  else if (ask.kind === "hold") await hold(ask.key, ask.resources);
  else if (ask.kind === "release") return release(ask.resources);
  else if (ask.kind === "await") return Promise.all(ask.resources.map((resource) => acquiredUs(ask.key, resource)));
  else await Promise.all([...locks.values()].map((lock) => lock.close()));
  return undefined;
});
