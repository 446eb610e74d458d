// lua/seal.lua: store a token where, and only where, all resources are still ours and nothing above the token is stored for them.
import { notSealed, type Reply, sealed } from "../reply.js";
import type { ScriptCall } from "../script-call.js";
import { store, storedAt } from "./counter.js";
import type { NodeRecord } from "./record.js";
import { argumentAt, keyAt, type Request, type RequestScript } from "./request-script.js";

export const seal: RequestScript = { firstKey: 1, shared: 0, fields: 2, memory: "stores", request };

function request(call: ScriptCall, record: NodeRecord, { first, last, at }: Request): Reply {
  const { memory, nowMs } = call;
  const mine = argumentAt(call, at);
  const token = Number(argumentAt(call, at + 1));
  for (let key = first; key < last; key += 2) {
    const value = memory.get(keyAt(call, key), nowMs);
    if (value === undefined || !String(value).startsWith(mine) || storedAt(call, record, keyAt(call, key + 1)) > token) return notSealed;
  }
  for (let key = first; key < last; key += 2) store(call, record, { key: keyAt(call, key + 1), token });
  return sealed;
}
