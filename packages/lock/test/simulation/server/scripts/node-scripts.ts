// lua/status.lua, mark.lua, visit.lua and admit.lua: how the server and its record stand, and the three steps that bring a node back whose memory is not believed.
import { digits, type Reply } from "../reply.js";
import type { ScriptCall } from "../script-call.js";
import { admissionIn, admittedAs, lifeOf, numberIn } from "./record.js";

export function status({ host, memory, nowMs, keys }: ScriptCall): Reply {
  const record = memory.hash(keys[0] ?? "", nowMs);
  const field = (name: string): string => record?.get(name) ?? "";
  const admitted = admissionIn(record?.get("admitted")) === undefined ? "" : field("admitted");
  const stored = ["id", "fleet", "size", "maxTtlMs", "durable"].map(field);
  return [host.runId, host.version, "master", "0", digits(nowMs), field("floor"), admitted, ...stored];
}

export function mark({ host, memory, nowMs, keys, args }: ScriptCall): Reply {
  const [key = ""] = keys;
  const [freshTicket = "", freshId = "", wallMs = "", maxTtlMs = "", claim = "", claimMs = ""] = args;
  const record = memory.hash(key, nowMs) ?? new Map<string, string>();
  const admittedIn = admissionIn(record.get("admitted"))?.life;
  if (admittedIn === lifeOf(host.runId) && record.has("floor")) return ["1"];
  const fields: Record<string, string> = {};
  if (!record.has("id")) fields.id = freshId;
  if (!record.has("ticket") || record.get("ticketRun") !== host.runId) {
    const opened = { ticket: freshTicket, ticketRun: host.runId, ticketAt: digits(nowMs) };
    Object.assign(fields, opened, { proposedFloor: digits(Math.max(nowMs, Number(wallMs))), proposedMaxTtlMs: maxTtlMs });
  }
  const claimUntil = Number(record.get("claimUntil"));
  const isOurs = !record.has("claim") || record.get("claim") === claim || claimUntil <= nowMs || claimUntil > nowMs + Number(claimMs);
  if (isOurs) Object.assign(fields, { claim, claimUntil: digits(nowMs + Number(claimMs)) });
  memory.put(key, fields, nowMs);
  const now = (field: string): string => memory.hash(key, nowMs)?.get(field) ?? "";
  const survivedStart = admittedIn !== undefined && admittedIn !== lifeOf(host.runId);
  const sinceStart = survivedStart ? Math.max(0, (host.uptimeSeconds() - 1) * 1_000) : 0;
  const sinceTicket = Math.max(0, nowMs - Number(now("ticketAt")));
  const proposed = [now("proposedFloor"), now("proposedMaxTtlMs")];
  return ["0", host.runId, now("id"), now("ticket"), digits(sinceTicket), digits(sinceStart), ...proposed, isOurs ? "1" : "0"];
}

export function visit({ host, memory, nowMs, keys, args }: ScriptCall): Reply {
  const [key = ""] = keys;
  const record = memory.hash(key, nowMs);
  const admission = admissionIn(record?.get("admitted"));
  const floor = record?.get("floor");
  if (admission?.life !== lifeOf(host.runId) || floor === undefined) return null;
  memory.put(key, { admitted: admittedAs(host.runId, admission.base, args[0] ?? "") }, nowMs);
  return floor;
}

export function admit({ host, memory, nowMs, keys, args }: ScriptCall): Reply {
  const [key = ""] = keys;
  const [runId = "", ticket, least = "", epoch = "", id = "", fleet = "", size = "", maxTtlMs = "", durable = ""] = args;
  const record = memory.hash(key, nowMs);
  if (lifeOf(host.runId) !== lifeOf(runId) || record?.get("ticket") !== ticket) return ["0"];
  const floor = Math.max(numberIn(record?.get("floor")) ?? 0, Number(least));
  memory.delete(key);
  const admitted = admittedAs(host.runId, floor, epoch);
  memory.put(key, { admitted, floor: digits(floor), id, fleet, size, maxTtlMs, durable }, nowMs);
  host.watcher?.admitted(host.name);
  return ["1", digits(floor)];
}
