// lua/release.lua: delete what is ours and tell who waits for it. Counters stay; works on a node that is not believed, too. A single release of a single resource that nobody
// waits for, with an owner as the lock makes them, is answered with a bare number.
import { confirmed, type Reply, released } from "../reply.js";
import type { ScriptCall } from "../script-call.js";
import type { NodeRecord } from "./record.js";
import { argumentAt, keyAt, type Request, type RequestScript, runRequests } from "./request-script.js";
import { tell } from "./tell.js";

const OWNER_LENGTH = 22;

const eachRequest: RequestScript = { firstKey: 0, shared: 0, fields: 1, memory: "does not ask", request };

export function release(call: ScriptCall): Reply {
  const { memory, nowMs, keys, args, run, host } = call;
  if (run !== undefined && keys.length === 1 && args.length === 1 && argumentAt(call, 0)[OWNER_LENGTH] === "|") {
    const value = memory.get(keyAt(call, 0), nowMs);
    if (value === undefined || !String(value).startsWith(argumentAt(call, 0).slice(0, OWNER_LENGTH + 1))) return confirmed(0);
    if (host.listeners(keyAt(call, 0)) === 0) {
      memory.delete(keyAt(call, 0));
      return confirmed(1);
    }
  }
  return runRequests(eachRequest, call);
}

function request(call: ScriptCall, _: NodeRecord, { first, last, at }: Request): Reply {
  const { memory, nowMs } = call;
  const text = argumentAt(call, at);
  const mine = text.slice(0, text.indexOf("|") + 1);
  let waiting: number | undefined;
  for (let key = first; key <= last; key++) {
    const value = memory.get(keyAt(call, key), nowMs);
    if (value === undefined || !String(value).startsWith(mine)) continue;
    memory.delete(keyAt(call, key));
    waiting = Math.max(waiting ?? 0, tell(call, keyAt(call, key), Number(text.slice(mine.length))));
  }
  return released(waiting);
}
