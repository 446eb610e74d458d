// What the nodes have stored, read past the lock: whether they are admitted again, which locks are
// left, how far they have counted.
import { setTimeout as sleep } from "node:timers/promises";
import type { RedisFleet, RedisNode } from "@palisade/testkit";
import type { CounterSample } from "../history/records.js";

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

/** Resolves when the node votes in that generation or a later one; false if the signal came. */
export async function votesIn(node: RedisNode, generation: number, signal: AbortSignal): Promise<boolean> {
  for (; !signal.aborted; await sleep(LOOK_EVERY_MS)) {
    const admitted = String(await node.cli("HGET", NODE_KEY, "admitted").catch(noAnswer));
    // Behind the mark, the run id and the counter floor.
    if (admitted.startsWith("2") && Number.parseInt(admitted.slice(55), 10) >= generation) return true;
  }
  return false;
}

/** The field begins with a mark, 2 where the node votes, and the run id without its last digit. */
function isAdmitted(runId: string, record: readonly string[]): boolean {
  return record[record.indexOf("admitted") + 1]?.startsWith(`2${runId.slice(0, -1)}`) ?? false;
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

interface Memories {
  isBusy(node: RedisNode): boolean;
  /** How often the node has lost its memory. */
  memoryOf(node: RedisNode): number;
}

/** Of all nodes that have no fault now. */
export async function readCounters(fleet: RedisFleet, resource: string, memories: Memories): Promise<CounterSample[]> {
  const healthy = fleet.nodes.filter((node) => !memories.isBusy(node));
  const samples = await Promise.all(healthy.map((node) => readOne(node, resource, memories)));
  return samples.filter((sample) => sample !== undefined);
}

/** Undefined if the node did not answer, or lost its memory meanwhile. */
async function readOne(node: RedisNode, resource: string, memories: Memories): Promise<CounterSample | undefined> {
  const memory = memories.memoryOf(node);
  // Each of them only rises by itself, so that they need not be read at one moment.
  const questions = [node.cli("HGET", "{palisade}:node", "floor"), node.cli("GET", `{palisade}:token:${resource}`)];
  const answers = await Promise.all(questions).catch(noAnswer);
  if (answers === undefined || memory !== memories.memoryOf(node)) return undefined;
  const [floor, counter] = answers;
  return { node: node.name, memory, floor: Number(floor ?? 0), counter: Number(counter ?? 0) };
}
