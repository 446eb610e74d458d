// lua/raise.lua: raise the counter of a resource to at least a token, whoever owns it, and take the lock away if that is asked for.
import { type Reply, raised } from "../reply.js";
import type { ScriptCall } from "../script-call.js";
import { store, storedAt } from "./counter.js";
import type { NodeRecord } from "./record.js";
import { argumentAt, keyAt, type Request, type RequestScript } from "./request-script.js";
import { tell } from "./tell.js";

export const raise: RequestScript = { firstKey: 1, shared: 0, fields: 2, memory: "stores", request };

function request(call: ScriptCall, record: NodeRecord, { first, at }: Request): Reply {
  const { memory, nowMs } = call;
  const counter = keyAt(call, first + 1);
  const token = Math.max(Number(argumentAt(call, at)), storedAt(call, record, counter));
  const removed = argumentAt(call, at + 1) === "holder" ? memory.get(keyAt(call, first), nowMs) : undefined;
  store(call, record, { key: counter, token });
  if (removed !== undefined) {
    memory.delete(keyAt(call, first));
    call.host.watcher?.removed(call.host.name, keyAt(call, first));
    tell(call, keyAt(call, first), token);
  }
  return raised(token, removed);
}
