// lua/each.lua: a script of requests executes each of a list of requests of one kind, in order. One that fails fails alone.
import { failed, notBelieved, ofCall, type Reply } from "../reply.js";
import type { ScriptCall } from "../script-call.js";
import { type NodeRecord, readRecord, storeFloor } from "./record.js";

/** Where one request stands: its keys from `first` to `last`, its arguments from `at` on. */
export interface Request {
  readonly first: number;
  readonly last: number;
  readonly at: number;
}

export interface RequestScript {
  readonly firstKey: 0 | 1;
  /** How many arguments hold for all requests, and how many belong to each. */
  readonly shared: 0 | 1;
  readonly fields: 1 | 2;
  readonly memory: "stores" | "reads" | "does not ask";
  request(call: ScriptCall, record: NodeRecord, request: Request): Reply;
}

const unasked: NodeRecord = { admitted: "-", base: 0, floor: 0, floorBefore: 0 };

export function runRequests(script: RequestScript, call: ScriptCall): Reply {
  const record = script.memory === "does not ask" ? unasked : readRecord(call);
  if (record === undefined) return notBelieved;
  const replies: Reply[] = [];
  const count = (call.args.length - script.shared) / script.fields;
  const step = (call.keys.length - script.firstKey) / count;
  for (let index = 0; index < count; index++) {
    const first = script.firstKey + index * step;
    try {
      replies.push(script.request(call, record, { first, last: first + step - 1, at: script.shared + index * script.fields }));
    } catch (error) {
      replies.push(failed(error));
    }
  }
  if (script.memory === "stores") storeFloor(call, record);
  return ofCall(record.admitted, replies);
}

export function keyAt({ keys }: ScriptCall, index: number): string {
  return keys[index] as string;
}

export function argumentAt({ args }: ScriptCall, index: number): string {
  return args[index] as string;
}
