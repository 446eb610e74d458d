// Whether nodes are believed again, and what locks are left on them, seen past the lock. Changes nothing.
import { setTimeout as sleep } from "node:timers/promises";
import type { RedisNode } from "@palisade/testkit";

const NODE_KEY = "{palisade}:node";
const LOCK_KEYS = "{palisade}:lock:*";
const LOOK_EVERY_MS = 20;

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
