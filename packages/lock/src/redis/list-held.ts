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
      if (!Array.isArray(reply) || reply.length % FIELDS !== 1 || typeof reply[0] !== "string") throw new GarbageReply(reply);
      const leases: StoredLease[] = [];
      for (let at = 1; at < reply.length; at += FIELDS) leases.push(storedLease(reply, at));
      return { cursor: reply[0], leases };
    },
  };
}

function storedLease(reply: readonly unknown[], at: number): StoredLease {
  const [resource, owner, holder, pttl, token] = [reply[at], reply[at + 1], reply[at + 2], reply[at + 3], reply[at + 4]];
  if (typeof resource !== "string" || typeof owner !== "string" || typeof holder !== "string" || typeof token !== "number")
    throw new GarbageReply(reply.slice(at, at + FIELDS));
  return { resource, owner, holder, remainingMs: remainingOf(pttl), token };
}

export function listHeldOf(asking: Asking, prefix: string): Promise<readonly Asked<StoredLeases>[]> {
  return askEach(asking.nodes, async (node) => {
    const leases = new Map<string, StoredLease>();
    let cursor = "0";
    do {
      const page = await node.connection.run(heldPage(asking.keys, cursor, prefix));
      for (const lease of page.leases) leases.set(lease.resource, lease);
      cursor = page.cursor;
    } while (cursor !== "0" && leases.size < MAX_LEASES);
    return { leases, isWhole: cursor === "0" };
  });
}
