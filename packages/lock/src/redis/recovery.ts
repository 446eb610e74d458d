// What an operator's recovery of a store asks of the nodes, outside of the algorithm: which
// resources have a counter, and marks, which are numbers that only rise.
import type { Asked } from "../protocol/fleet.js";
import { causeOf } from "./causes.js";
import type { Keys } from "./keys.js";
import { listResourcesScript } from "./lua.generated.js";
import type { RedisNode } from "./node.js";
import { mark, type ScriptCall } from "./node-record.js";
import { GarbageReply } from "./requests.js";

interface Page {
  readonly cursor: string;
  readonly names: readonly string[];
}

const MOVED = "answered while members were being admitted, which does not count";
const PATTERN_CHARACTERS = /[*?[\]\\^-]/g;

/** Matches exactly this text. */
export function patternOf(text: string): string {
  return text.replace(PATTERN_CHARACTERS, "\\$&");
}

export function resourcesPage(keys: Keys, cursor: string): ScriptCall<Page> {
  const prefix = keys.token("");
  return {
    source: listResourcesScript,
    keys: [keys.node],
    args: [cursor, patternOf(prefix), String(Buffer.byteLength(prefix))],
    read(reply) {
      if (reply === null) throw new Error("not admitted");
      if (!Array.isArray(reply) || !reply.every((word) => typeof word === "string")) throw new GarbageReply(reply);
      const [next = "0", ...names] = reply as string[];
      return { cursor: next, names };
    },
  };
}

export interface Asking {
  readonly nodes: readonly RedisNode[];
  readonly keys: Keys;
}

export function listResourcesOf({ nodes, keys }: Asking): Promise<readonly Asked<readonly string[]>[]> {
  return askEach(nodes, async (node) => {
    const names: string[] = [];
    let cursor = "0";
    do {
      const page = await node.connection.run(resourcesPage(keys, cursor));
      names.push(...page.names);
      cursor = page.cursor;
    } while (cursor !== "0");
    return names;
  });
}

/**
 * An answer counts only in the epoch that was noted before, like a grant: a mark that is
 * stored after another node was rebuilt from this one is not known there.
 */
export function markNodes({ nodes, keys }: Asking, name: string, atLeast: number): Promise<readonly Asked<number>[]> {
  return askEach(nodes, async (node) => {
    const noted = node.epoch();
    const { admitted, marks } = await node.connection.run(mark(keys, new Map([[name, atLeast]])));
    node.noteAdmitted(admitted);
    if (noted === undefined || node.epoch() !== noted) throw new Error(admitted === "" ? "not admitted" : MOVED);
    return marks.get(name) ?? 0;
  });
}

/** The connection rejects after nodeTimeoutMs, and at once where there is none. */
export function askEach<Answer>(nodes: readonly RedisNode[], ask: (node: RedisNode) => Promise<Answer>): Promise<readonly Asked<Answer>[]> {
  return Promise.all(
    nodes.map(async (node): Promise<Asked<Answer>> => {
      try {
        if (!node.connection.isUp) return { kind: "unreachable", node: node.name, cause: node.connection.cause };
        return { kind: "answered", node: node.name, answer: await ask(node) };
      } catch (error) {
        return { kind: "unreachable", node: node.name, cause: causeOf(error) };
      }
    }),
  );
}
