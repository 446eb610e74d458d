// Founds a fleet of nodes that remember nothing: all that are configured, or all but those that the
// operator leaves out.
import { createHash } from "node:crypto";
import type { OpenAdmission } from "../node-record.js";
import type { Roster } from "../roster.js";
import type { SeenNode, Step } from "./plan.js";
import { type AdmissionSettings, admitOne, type Membership, nodeCalled, notTogether } from "./steps.js";

/**
 * Founds the fleet: every locker that does so at the same time reads the same open admissions, and
 * so founds the same fleet with the same floor. `absent` are members that the operator leaves out:
 * they are admitted when they come, like nodes that lost their memory.
 */
export async function found(settings: AdmissionSettings, nodes: readonly SeenNode[], absent: readonly string[] = []): Promise<Founded> {
  const opened = nodes.flatMap(({ opened: made }) => made ?? []);
  const membership = membershipOf(settings, nodes, absent);
  // A node that is asked by founders with different lists joins the first, and the others are not
  // founded: lists that share a node may each have a majority without it.
  const founding = membership.roster === undefined ? "" : foundingOf(settings, membership.roster);
  // A node whose admission was opened after another had been admitted may have forgotten leases of
  // this very fleet.
  const others = await notTogether(settings, nodes, founding);
  const joined = others.filter(({ why }) => why === "another fleet").map(({ name }) => name);
  if (joined.length > 0) return { kind: "blocked", nodes, reason: anotherList(settings, joined) };
  if (others.length > 0) return { kind: "not yet" };
  const floor = Math.max(...opened.map(({ proposedFloor }) => proposedFloor), ...nodes.map(({ status: seen }) => seen.floor ?? 0));
  const way = "bootstrap";
  const admitted = await Promise.all(nodes.map((node) => admitOne(settings, node, { floor, way, membership, founding })));
  return { kind: admitted.includes(true) ? "founded" : "not yet" };
}

type Founded = { readonly kind: "founded" | "not yet" } | Extract<Step, { kind: "blocked" }>;

/** Ends with 16 characters that are the same for every locker with the same list of nodes. */
function foundingOf({ fleet }: AdmissionSettings, { members, fleets }: Roster): string {
  const list = fleet.configured.map(({ address }) => address).sort();
  const among = fleets?.key === undefined ? "" : ` ${fleets.key}`;
  const key = createHash("sha256")
    .update(`${list.join(" ")}${among}`)
    .digest("base64url")
    .slice(0, 16);
  return `${members.map(({ id }) => id).join(" ")}|${key}`;
}

function anotherList({ keys, fleet }: AdmissionSettings, names: readonly string[]): string {
  const here = fleet.configured.map(({ address }) => address).join(", ");
  return `${names.join(" and ")} would be founded into another fleet by a locker with another list of nodes, or with other addresses of the same (here: ${here}); give every locker the same list, or let one found the fleet before the others start; then delete ${keys.node} there`;
}

function membershipOf(settings: AdmissionSettings, founders: readonly SeenNode[], absent: readonly string[]): Membership {
  const opened = founders.flatMap(({ opened: made }: { opened?: OpenAdmission }) => made ?? []);
  const maxTtlMs = Math.max(...opened.map(({ proposedMaxTtlMs }) => proposedMaxTtlMs));
  const members = founders.map((node) => ({
    id: node.opened?.id ?? "",
    address: nodeCalled(settings, node.name)?.address ?? "",
    since: 1,
  }));
  for (const address of absent) members.push({ id: settings.clock.secret(), address, since: 1 });
  // In one order for all founders.
  members.sort((one, other) => (one.id < other.id ? -1 : 1));
  const ids = members.map(({ id }) => id).join(" ");
  return {
    fleet: createHash("sha256").update(ids).digest("base64url").slice(0, 16),
    maxTtlMs,
    isNew: true,
    roster: settings.format === "1" ? undefined : { generation: 1, members, maxTtlMs, formerMaxTtlMs: maxTtlMs, ...listOf(settings) },
  };
}

/** Of several fleets that are founded together none is used before all of them say the same. */
function listOf({ expected: { fleets } }: AdmissionSettings): Pick<Roster, "fleets"> {
  if (fleets === undefined || fleets.names.length < 2) return {};
  return { fleets: { version: 0, key: fleets.key, fleets: fleets.names.map((name) => ({ name, id: "" })) } };
}
