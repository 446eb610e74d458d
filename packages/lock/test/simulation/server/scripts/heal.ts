// lua/heal.lua: plant our key again where there is none, with its token.
import { extended, type Reply, taken } from "../reply.js";
import type { ScriptCall } from "../script-call.js";
import { store, storedAt } from "./counter.js";
import type { NodeRecord } from "./record.js";
import { argumentAt, keyAt, type Request, type RequestScript } from "./request-script.js";

export const heal: RequestScript = { firstKey: 1, shared: 1, fields: 2, memory: "stores", request };

function request(call: ScriptCall, record: NodeRecord, { first, last, at }: Request): Reply {
  const { memory, nowMs } = call;
  const planted = argumentAt(call, at);
  const mine = planted.slice(0, planted.indexOf("|") + 1);
  const token = Number(argumentAt(call, at + 1));
  for (let key = first; key < last; key += 2) {
    const value = memory.get(keyAt(call, key), nowMs);
    if (value !== undefined && !String(value).startsWith(mine)) return taken(value, memory.leftMs(keyAt(call, key), nowMs));
  }
  for (let key = first; key < last; key += 2) {
    const counter = keyAt(call, key + 1);
    store(call, record, { key: counter, token: Math.max(token, storedAt(call, record, counter)) });
    memory.set(keyAt(call, key), memory.get(keyAt(call, key), nowMs) ?? planted, nowMs + Number(argumentAt(call, 0)));
  }
  return extended;
}
