// lua/counter.lua: the highest token that may have been stored for one resource.
import { digits } from "../reply.js";
import { type ScriptCall, ScriptError } from "../script-call.js";
import type { NodeRecord } from "./record.js";

export const HIGHEST = 999_999_999_999_999;

export function counterAt({ memory, nowMs }: ScriptCall, key: string): number | undefined {
  const value = memory.get(key, nowMs);
  if (value === undefined) return undefined;
  const number = typeof value === "number" ? value : value.trim() === "" ? Number.NaN : Number(value);
  if (!(number >= 0 && number <= HIGHEST && Number.isInteger(number))) throw new ScriptError("FOREIGN a token key holds no token");
  return number;
}

export function storedAt(call: ScriptCall, record: NodeRecord, key: string): number {
  return Math.max(counterAt(call, key) ?? record.floor, record.base);
}

export function store(call: ScriptCall, record: NodeRecord, { key, token }: { readonly key: string; readonly token: number }): void {
  if (token > HIGHEST) throw new ScriptError(`EXHAUSTED no token is left above ${digits(HIGHEST)}`);
  call.memory.set(key, token, call.nowMs + call.retentionMs);
  if (token > record.floor) record.floor = token;
}
