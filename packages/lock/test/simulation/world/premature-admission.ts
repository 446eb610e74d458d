// For controls: nodes that are believed too early.
import { paddedRunId, readAdmissionRecord } from "#lock/redis/admission-record.js";
import type { Reply } from "../server/commands.js";
import type { Memory } from "../server/memory.js";
import type { Executed, SimServer } from "../server/sim-server.js";

const NODE_KEY = "{sim}:node";

/** Puts the old record into the new memory: the node votes as if it had forgotten nothing. */
export function votesAtOnce(server: SimServer, before: Memory): void {
  const nowMs = server.wallMs();
  const known = before.hash(NODE_KEY, nowMs);
  const admission = readAdmissionRecord(known?.get("admitted") ?? "");
  if (known === undefined || admission === undefined) return;
  const record = server.memory.madeHash(NODE_KEY, nowMs);
  const floor = record.get("floor") ?? "0";
  for (const [field, value] of known) record.set(field, value);
  record.set("admitted", `${paddedRunId(server.runId)}${"0".repeat(15)}${admission.incarnation}`).set("floor", floor);
}

/** A founder's second look at a node repeats the answer of its first. */
export function answersAsBefore(): (executed: Executed) => Reply {
  const firstLooks = new WeakMap<Memory, Map<string, readonly Reply[]>>();
  return ({ name, server, args, reply }) => {
    if (name !== "openAdmission" || !Array.isArray(reply)) return reply;
    const locker = args[4] ?? "";
    const looks = firstLooks.get(server.memory) ?? new Map<string, readonly Reply[]>();
    firstLooks.set(server.memory, looks);
    const before = looks.get(locker);
    looks.delete(locker);
    if (before !== undefined && reply[3] !== before[3]) return before;
    if (reply[0] === "0") looks.set(locker, reply);
    return reply;
  };
}
