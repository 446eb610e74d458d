// lua/grant.lua: take all resources of each request, or none, and store a token above every token this node stored for any of them. A single request for a single resource
// may say what it believes of the node; if that is so, and the resource is granted, the whole reply is the token.
import { confirmed, granted, held, type Reply } from "../reply.js";
import { type ScriptCall, ScriptError } from "../script-call.js";
import { counterAt, HIGHEST, store } from "./counter.js";
import { baseIn, type NodeRecord, numberIn } from "./record.js";
import { argumentAt, keyAt, type Request, type RequestScript, runRequests } from "./request-script.js";

/** At the end of a lock's value: its release has to look for waiters. */
export const WANTED = "\n";
/** The floor goes up in steps. */
const AHEAD = 7;

const eachRequest: RequestScript = { firstKey: 1, shared: 1, fields: 1, memory: "stores", request };

export function grant(call: ScriptCall): Reply {
  if (call.args.length !== 3 || call.keys.length !== 3) return runRequests(eachRequest, call);
  const token = grantBelieved(call);
  if (token !== undefined) {
    call.host.watcher?.granted(call.host.name, keyAt(call, 1), { value: argumentAt(call, 1), token });
    return confirmed(token);
  }
  return runRequests(eachRequest, { ...call, args: call.args.slice(0, 2) });
}

/** undefined: in the ordinary way. */
function grantBelieved(call: ScriptCall): number | undefined {
  const { memory, nowMs, retentionMs, keys, args, run } = call;
  const [node = "", lock = "", counter = ""] = keys;
  const [ttlMs = "", value = "", belief = ""] = args;
  const record = memory.hash(node, nowMs);
  const floor = numberIn(record?.get("floor"));
  if (run === undefined || floor === undefined || record?.get("admitted") !== belief || memory.leftMs(lock, nowMs) !== -2) return undefined;
  const before = memory.get(counter, nowMs);
  if (before === undefined || !isInteger(before)) return undefined;
  const token = Number(before) + 1;
  if (token <= 1 || token <= (baseIn(belief) ?? HIGHEST) || token >= HIGHEST - AHEAD) return undefined;
  memory.set(lock, value, nowMs + Number(ttlMs));
  memory.change(counter, token, nowMs);
  if (token % 8 === 0) memory.endAt(counter, nowMs + retentionMs, nowMs);
  if (token > floor) memory.put(node, { floor: String(token + AHEAD) }, nowMs);
  return token;
}

function request(call: ScriptCall, record: NodeRecord, request: Request): Reply {
  const { host } = call;
  const answer = take(call, record, request);
  if (typeof answer !== "number") return answer;
  const value = argumentAt(call, request.at);
  for (let key = request.first; key < request.last; key += 2) host.watcher?.granted(host.name, keyAt(call, key), { value, token: answer });
  return granted(answer);
}

/** The token, or the reply that says who has it. */
function take(call: ScriptCall, record: NodeRecord, { first, last, at }: Request): number | Exclude<Reply, number> {
  const { memory, nowMs } = call;
  const value = argumentAt(call, at);
  const endsMs = nowMs + Number(argumentAt(call, 0));
  if (last === first + 1 && memory.leftMs(keyAt(call, first), nowMs) === -2) {
    memory.set(keyAt(call, first), value, endsMs);
    try {
      return nextToken(call, record, keyAt(call, last));
    } catch (error) {
      memory.delete(keyAt(call, first));
      throw error;
    }
  }
  let token = 0;
  let again = true;
  for (let key = first; key < last; key += 2) {
    const holder = memory.get(keyAt(call, key), nowMs);
    if (holder === undefined) again = false;
    else if (holder !== value && holder !== `${value}${WANTED}`) {
      want(call, keyAt(call, key), holder);
      return held((key - first) / 2 + 1, holder, memory.leftMs(keyAt(call, key), nowMs)) as Exclude<Reply, number>;
    }
    const counter = counterAt(call, keyAt(call, key + 1));
    if (counter === undefined) again = false;
    token = Math.max(token, counter ?? record.floor);
  }
  if (again) return token;
  token = Math.max(token, record.base) + 1;
  for (let key = first; key < last; key += 2) {
    store(call, record, { key: keyAt(call, key + 1), token });
    memory.set(keyAt(call, key), value, endsMs);
  }
  return token;
}

/** The lock that a request is refused for is marked as wanted. */
function want({ memory, nowMs }: ScriptCall, lock: string, holder: string | number): void {
  const value = String(holder);
  if (!value.endsWith(WANTED) && value.includes("|")) memory.change(lock, `${value}${WANTED}`, nowMs);
}

function nextToken(call: ScriptCall, record: NodeRecord, key: string): number {
  const { memory, nowMs, retentionMs } = call;
  const before = memory.get(key, nowMs);
  if (before !== undefined && !isInteger(before)) throw new ScriptError("ERR value is not an integer or out of range");
  let token = Number(before ?? 0) + 1;
  if (token <= record.base || token === 1 || token > HIGHEST) {
    const counter = token === 1 ? record.floor : token - 1;
    if (token === 1) memory.delete(key);
    token = Math.max(counter, record.base) + 1;
    store(call, record, { key, token });
  } else {
    memory.change(key, token, nowMs);
    if (token % 8 === 0) memory.endAt(key, nowMs + retentionMs, nowMs);
  }
  if (token > record.floor) record.floor = Math.min(token + AHEAD, HIGHEST);
  return token;
}

function isInteger(value: string | number): boolean {
  return typeof value === "number" || /^-?\d{1,18}$/.test(value);
}
