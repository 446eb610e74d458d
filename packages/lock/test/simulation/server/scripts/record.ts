// lua/record.lua, raised.lua and life.lua: is the memory of this node believed in this life of the server, and what does it store?
import { digits } from "../reply.js";
import type { ScriptCall } from "../script-call.js";

const LIFE_LENGTH = 40;
const BASE_LENGTH = 15;

export interface NodeRecord {
  /** The whole field; "-" for a script that does not ask. */
  readonly admitted: string;
  readonly base: number;
  floor: number;
  readonly floorBefore: number;
}

/** The field `admitted` taken apart. */
export interface Admission {
  readonly life: string;
  readonly base: number;
  readonly epoch: string;
}

/** undefined: not believed. */
export function readRecord(call: ScriptCall): NodeRecord | undefined {
  const { memory, nowMs, keys, host } = call;
  const record = memory.hash(keys[0] ?? "", nowMs);
  const admitted = record?.get("admitted") ?? "";
  const floor = numberIn(record?.get("floor"));
  if (floor === undefined || admitted.slice(0, LIFE_LENGTH) !== lifeOf(call.run ?? host.runId)) return undefined;
  const base = baseIn(admitted);
  return base === undefined ? undefined : { admitted, base, floor, floorBefore: floor };
}

/** The floor rises once for the whole call. */
export function storeFloor({ memory, nowMs, keys }: ScriptCall, { floor, floorBefore }: NodeRecord): void {
  if (floor > floorBefore) memory.put(keys[0] ?? "", { floor: digits(floor) }, nowMs);
}

export function admissionIn(text: string | undefined): Admission | undefined {
  const base = baseIn(text ?? "");
  if (text === undefined || base === undefined || text.length <= LIFE_LENGTH + BASE_LENGTH) return undefined;
  return { life: text.slice(0, LIFE_LENGTH), base, epoch: text.slice(LIFE_LENGTH + BASE_LENGTH) };
}

export function admittedAs(runId: string, base: number, epoch: string): string {
  return lifeOf(runId) + digits(base).padStart(BASE_LENGTH, "0") + epoch;
}

export function lifeOf(runId: string): string {
  return runId.padEnd(LIFE_LENGTH).slice(0, LIFE_LENGTH);
}

export function baseIn(admitted: string): number | undefined {
  return numberIn(admitted.slice(LIFE_LENGTH, LIFE_LENGTH + BASE_LENGTH));
}

export function numberIn(text: string | undefined): number | undefined {
  return text === undefined || text.trim() === "" || Number.isNaN(Number(text)) ? undefined : Number(text);
}
