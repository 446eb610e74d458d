// Reads from the nodes, past the lock, how far they have counted for one resource.
import type { RedisFleet, RedisNode } from "@palisade/testkit";
import type { CounterSample } from "./records.js";

export interface Memories {
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

// A node that was killed under the question.
function noAnswer(): undefined {}
