// lua/release.lua: delete what is ours, and tell who waits for it if it is wanted. Counters stay; works on a node that is not believed, too. A single release of a single
// resource that is not wanted, with an owner as the lock makes them, is answered with a bare number.
import { confirmed, type Reply, released } from "../reply.js";
import type { ScriptCall } from "../script-call.js";
import { WANTED } from "./grant.js";
import type { NodeRecord } from "./record.js";
import { argumentAt, keyAt, type Request, type RequestScript, runRequests } from "./request-script.js";
import { tell } from "./tell.js";

const OWNER_LENGTH = 22;

const eachRequest: RequestScript = { firstKey: 0, shared: 0, fields: 1, memory: "does not ask", request };

export function release(call: ScriptCall): Reply {
  const { memory, nowMs, keys, args } = call;
  if (keys.length === 1 && args.length === 1 && argumentAt(call, 0)[OWNER_LENGTH] === "|") {
    const value = memory.get(keyAt(call, 0), nowMs);
    if (value === undefined || !String(value).startsWith(argumentAt(call, 0).slice(0, OWNER_LENGTH + 1))) return confirmed(0);
    if (!String(value).endsWith(WANTED)) {
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
    const told = String(value).endsWith(WANTED) ? tell(call, keyAt(call, key), Number(text.slice(mine.length))) : 0;
    waiting = Math.max(waiting ?? 0, told);
  }
  return released(waiting);
}
