// Whether nodes are admitted again, and which locks are left on them, read past the lock.
import { setTimeout as sleep } from "node:timers/promises";
import type { RedisNode } from "@palisade/testkit";

const NODE_KEY = "{palisade}:node";
const LOCK_KEYS = "{palisade}:lock:*";
const LOOK_EVERY_MS = 20;

/** Resolves when the node votes again since its last start; false if the signal came first. */
export async function readmitted(node: RedisNode, signal: AbortSignal): Promise<boolean> {
  while (!signal.aborted) {
    const record = await node.cli("HGETALL", NODE_KEY).catch(noAnswer);
    const server = await node.cli("INFO", "server").catch(noAnswer);
    const runId = /run_id:(\w+)/.exec(String(server))?.[1];
    if (runId !== undefined && Array.isArray(record) && isAdmitted(runId, record as string[])) return true;
    await sleep(LOOK_EVERY_MS);
  }
  return false;
}

/** The record of an admission begins with the server's run id. So does the ticket of one that is still open. */
function isAdmitted(runId: string, record: readonly string[]): boolean {
  return record.some((value, i) => i % 2 === 1 && value.startsWith(runId) && record[i - 1]?.startsWith("ticket") === false);
}

/** The lock keys on all nodes, as "node key". */
export async function lockKeys(nodes: readonly RedisNode[]): Promise<string[]> {
  const keys = await Promise.all(
    nodes.map(async (node) => ((await node.cli("KEYS", LOCK_KEYS)) as string[]).map((key) => `${node.name} ${key}`)),
  );
  return keys.flat();
}

// A node that was killed under the question.
function noAnswer(): undefined {}
