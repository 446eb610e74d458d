// The leases that each node stores, read in small pages of its keys, so that no node is blocked.
import type { Asked, StoredLease, StoredLeases } from "../protocol/fleet.js";
import type { Keys } from "./keys.js";
import { listHeldScript } from "./lua.generated.js";
import type { ScriptCall } from "./node-record.js";
import { type Asking, askEach, patternOf } from "./recovery.js";
import { GarbageReply, remainingOf } from "./requests.js";

interface Page {
  readonly cursor: string;
  readonly leases: readonly StoredLease[];
}

const FIELDS = 5;
/** What a process keeps of one node's answer. */
const MAX_LEASES = 100_000;

function heldPage(keys: Keys, cursor: string, prefix: string): ScriptCall<Page> {
  const start = keys.lock("");
  return {
    source: listHeldScript,
    keys: [keys.node],
    args: [cursor, `${patternOf(start + prefix)}*`, start, keys.token("")],
    read(reply) {
      if (reply === null) throw new Error("not admitted");
      const fields = typeof reply === "string" ? (JSON.parse(reply) as unknown) : reply;
      if (!Array.isArray(fields) || fields.length % FIELDS !== 1 || typeof fields[0] !== "string") throw new GarbageReply(reply);
      const leases: StoredLease[] = [];
      for (let at = 1; at < fields.length; at += FIELDS) leases.push(storedLease(fields, at));
      return { cursor: fields[0], leases };
    },
  };
}

function storedLease(fields: readonly unknown[], at: number): StoredLease {
  const resource = fields[at];
  const owner = fields[at + 1];
  const holder = fields[at + 2];
  const token = Number(fields[at + 4]);
  if (typeof resource !== "string" || typeof owner !== "string" || typeof holder !== "string" || !Number.isSafeInteger(token))
    throw new GarbageReply(fields.slice(at, at + FIELDS));
  return { resource, owner, holder, remainingMs: remainingOf(fields[at + 3]), token };
}

export function listHeldOf(asking: Asking, prefix: string): Promise<readonly Asked<StoredLeases>[]> {
  return askEach(asking.nodes, async (node) => {
    const leases = new Map<string, StoredLease>();
    let cursor = "0";
    let steps = 0;
    do {
      steps++;
      const page = await node.connection.run(heldPage(asking.keys, cursor, prefix));
      for (const lease of page.leases) leases.set(lease.resource, lease);
      cursor = page.cursor;
    } while (cursor !== "0" && leases.size < MAX_LEASES);
    return { leases, steps, isWhole: cursor === "0" };
  });
}
