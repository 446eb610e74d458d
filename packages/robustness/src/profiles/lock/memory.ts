// Samples of what the nodes remember, seen past the lock. Changes nothing.
import type { RedisNode } from "@palisade/testkit";
import { RESOURCE } from "./client-words.js";
import type { CounterSample } from "./history.js";

const NODE_KEY = "{palisade}:node";
const TOKEN_KEY = `{palisade}:token:${RESOURCE}`;

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

// A node that was killed under the question.
function noAnswer(): undefined {}
