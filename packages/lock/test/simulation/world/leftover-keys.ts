// Keys that must not be on the nodes once every caller has released its leases: locks of live
// processes, and any key without an end except the node's record. Where nothing failed but
// processes, also tickets of live ones.
import type { Machine } from "../network/path.js";
import type { Host } from "./host.js";
import type { FaultKind, Scenario } from "./scenario.js";

/** After these faults a released key may exist again, or outlive its lease. */
const revives: readonly FaultKind[] = ["second time", "lose tail", "jump node"];

export interface AtTheEnd {
  readonly hosts: readonly Host[];
  readonly clocks: Scenario["clocks"];
  readonly faults: Readonly<Record<FaultKind, number>>;
  readonly wants: Scenario["wants"];
}

export function leftoverKeys(machines: readonly Machine[], { hosts, clocks, faults, wants }: AtTheEnd): readonly string[] {
  const alive = new Set(hosts.map(({ name }) => name));
  const mayRevive = clocks === "wild" || revives.some((kind) => faults[kind] > 0);
  return machines.flatMap(({ server }) =>
    [...server.memory.alive(server.wallMs())].flatMap(({ key, value, leftMs }) => {
      if (key.endsWith(":node")) return [];
      if (leftMs === -1) return [`${key} on ${server.name} has no end`];
      if (wants === "turns" && typeof value !== "string" && key.includes(":queue:")) {
        const left = [...value.keys()].filter((ticket) => alive.has(processIn(ticket)));
        return left.map((ticket) => `ticket ${ticket} is in ${key} on ${server.name}, and its process is alive and done`);
      }
      if (!key.includes(":lock:") || mayRevive) return [];
      if (!alive.has(processIn(String(value)))) return [];
      return [`${key} on ${server.name} lives ${leftMs} ms more for ${String(value)}, whose process is alive and done`];
    }),
  );
}

/** Secrets begin with the name of the process. */
function processIn(secret: string): string {
  return secret.split("-", 1)[0] ?? "";
}
