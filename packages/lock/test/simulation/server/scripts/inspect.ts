// lua/inspect.lua: who holds a resource, for how long, and the highest token that may have been stored for it.
import { type Reply, seen } from "../reply.js";
import type { ScriptCall } from "../script-call.js";
import { storedAt } from "./counter.js";
import type { NodeRecord } from "./record.js";
import { keyAt, type Request, type RequestScript } from "./request-script.js";

export const inspect: RequestScript = { firstKey: 1, shared: 0, fields: 1, memory: "reads", request };

function request(call: ScriptCall, record: NodeRecord, { first }: Request): Reply {
  const { memory, nowMs } = call;
  const value = memory.get(keyAt(call, first), nowMs);
  return seen(value, memory.leftMs(keyAt(call, first), nowMs), storedAt(call, record, keyAt(call, first + 1)));
}
