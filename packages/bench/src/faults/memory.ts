// What the nodes remember, seen past the lock: samples of their counters, whether they are believed again, and what is left on them. Changes nothing.
import { setTimeout as sleep } from "node:timers/promises";
import type { RedisNode } from "@palisade/testkit";
import { RESOURCE } from "./client-words.js";
import type { CounterSample } from "./history.js";

const NODE_KEY = "{palisade}:node";
const TOKEN_KEY = `{palisade}:token:${RESOURCE}`;
const LOCK_KEYS = "{palisade}:lock:*";
const LOOK_EVERY_MS = 20;

/** What it has stored now; undefined if it did not answer, or lost its memory meanwhile. */
export async function sample(node: RedisNode, memoryNow: () => number): Promise<CounterSample | undefined> {
  const memory = memoryNow();
  // Each of them only rises by itself, so that they need not be read at one moment.
  const questions = [node.cli("HGET", NODE_KEY, "floor"), node.cli("GET", TOKEN_KEY)];
  const answers = await Promise.all(questions).catch(noAnswer);
  if (answers === undefined || memory !== memoryNow()) return undefined;
  const [floor, counter] = answers;
  return { node: node.name, memory, floor: Number(floor ?? 0), counter: Number(counter ?? 0) };
}

/** Resolves when the node votes again in its present life; false if the signal came first. */
export async function believed(node: RedisNode, signal: AbortSignal): Promise<boolean> {
  while (!signal.aborted) {
    const run = await node.cli("HGET", NODE_KEY, "run").catch(noAnswer);
    const server = await node.cli("INFO", "server").catch(noAnswer);
    if (typeof run === "string" && String(server).includes(`run_id:${run}`)) return true;
    await sleep(LOOK_EVERY_MS);
  }
  return false;
}

/** The lock keys on all nodes. */
export async function lockKeys(nodes: readonly RedisNode[]): Promise<string[]> {
  const keys = await Promise.all(
    nodes.map(async (node) => ((await node.cli("KEYS", LOCK_KEYS)) as string[]).map((key) => `${node.name} ${key}`)),
  );
  return keys.flat();
}

// A node that was killed under the question.
function noAnswer(): undefined {}
