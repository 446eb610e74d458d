// Whether nodes are believed again, and what locks are left on them, seen past the lock. Changes nothing.
import { setTimeout as sleep } from "node:timers/promises";
import type { RedisNode } from "@palisade/testkit";

const NODE_KEY = "{palisade}:node";
const LOCK_KEYS = "{palisade}:lock:*";
const LOOK_EVERY_MS = 20;

/** Resolves when the node votes again in its present life; false if the signal came first. */
export async function believed(node: RedisNode, signal: AbortSignal): Promise<boolean> {
  while (!signal.aborted) {
    const record = await node.cli("HGETALL", NODE_KEY).catch(noAnswer);
    const server = await node.cli("INFO", "server").catch(noAnswer);
    const life = /run_id:(\w+)/.exec(String(server))?.[1];
    if (life !== undefined && Array.isArray(record) && isAdmittedIn(life, record as string[])) return true;
    await sleep(LOOK_EVERY_MS);
  }
  return false;
}

/** The record of an admission names the life of the server first. So does the ticket of one that is still to be admitted. */
function isAdmittedIn(life: string, record: readonly string[]): boolean {
  return record.some((value, i) => i % 2 === 1 && value.startsWith(life) && record[i - 1]?.startsWith("ticket") === false);
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
