// lua/extend.lua: renew all resources of each request if all are still ours. Never creates a key.
import { extended, missing, type Reply, taken } from "../reply.js";
import type { ScriptCall } from "../script-call.js";
import type { NodeRecord } from "./record.js";
import { argumentAt, keyAt, type Request, type RequestScript } from "./request-script.js";

export const extend: RequestScript = { firstKey: 1, shared: 1, fields: 1, memory: "reads", request };

function request(call: ScriptCall, _: NodeRecord, { first, last, at }: Request): Reply {
  const { memory, nowMs, retentionMs } = call;
  const mine = argumentAt(call, at);
  let lacks = false;
  for (let key = first; key < last; key += 2) {
    const value = memory.get(keyAt(call, key), nowMs);
    if (value === undefined) lacks = true;
    else if (!String(value).startsWith(mine)) return taken(value, memory.leftMs(keyAt(call, key), nowMs));
  }
  if (lacks) return missing;
  for (let key = first; key < last; key += 2) {
    memory.endAt(keyAt(call, key), nowMs + Number(argumentAt(call, 0)), nowMs);
    memory.endAt(keyAt(call, key + 1), nowMs + retentionMs, nowMs);
  }
  return extended;
}
