// Nodes that are believed too early, or with too little. Only for controls.
import type { Memory } from "../server/memory.js";
import type { Reply } from "../server/reply.js";
import type { ScriptCall } from "../server/script-call.js";
import { admit, mark, visit } from "../server/scripts/node-scripts.js";
import { admissionIn, admittedAs, lifeOf } from "../server/scripts/record.js";
import type { SimServer } from "../server/sim-server.js";

const NODE_KEY = "{sim}:node";

/** As if nothing had been forgotten. */
export function votesAtOnce(server: SimServer, before: Memory): void {
  const nowMs = server.wallMs();
  const known = before.hash(NODE_KEY, nowMs);
  const admission = admissionIn(known?.get("admitted"));
  if (known === undefined || admission === undefined) return;
  const floor = server.memory.hash(NODE_KEY, nowMs)?.get("floor") ?? "0";
  server.memory.put(NODE_KEY, { ...Object.fromEntries(known), admitted: admittedAs(server.runId, 0, admission.epoch), floor }, nowMs);
}

/** The memory was lost long ago, it says. */
export function readmitsAtOnce(call: ScriptCall): Reply {
  const reply = mark(call);
  return Array.isArray(reply) && reply[0] === "0" ? reply.map((word, i) => (i === 4 ? "99999999" : word)) : reply;
}

export function tellsNoFloor(call: ScriptCall): Reply {
  return visit(call) === null ? null : "1";
}

/** Whatever was lost since the admission began. */
export function admitsAnyMemory(call: ScriptCall): Reply {
  const [key = ""] = call.keys;
  const admission = admissionIn(call.memory.hash(key, call.nowMs)?.get("admitted"));
  if (admission?.life !== lifeOf(call.host.runId)) call.memory.put(key, { ticket: call.args[1] ?? "" }, call.nowMs);
  return admit(call);
}

/** What each locker was told by each memory, as long as it has not looked again. */
const firstLooks = new WeakMap<Memory, Map<string, readonly Reply[]>>();

/** Whoever looks again is told once more what it was told first, whatever has changed since. */
export function answersAsBefore(call: ScriptCall): Reply {
  const reply = mark(call);
  const claim = call.args[4] ?? "";
  const looks = firstLooks.get(call.memory) ?? new Map<string, readonly Reply[]>();
  firstLooks.set(call.memory, looks);
  const before = looks.get(claim);
  looks.delete(claim);
  if (before !== undefined && (!Array.isArray(reply) || reply[3] !== before[3])) return before;
  if (Array.isArray(reply) && reply[0] === "0") looks.set(claim, reply);
  return reply;
}
