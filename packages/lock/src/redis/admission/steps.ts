// Reads how every node stands, and takes one step of an admission. The order inside a step is what
// makes tokens unique (T2). First, before this step, the admission was opened: its nonce pins the
// memory of the node and the run of its server. Then the floors of the others are read, and those
// nodes get new epochs in the same script. Only then the floor is raised and the node admitted, if
// it still has that memory and its server that run. At the end: how a fleet is founded.
import { createHash } from "node:crypto";
import type { AdmissionWay } from "../../protocol/events.js";
import { causeOf } from "../connection.js";
import type { RedisFleet } from "../fleet.js";
import type { RedisNode } from "../node.js";
import {
  type AdmitArguments,
  admit,
  isAdmitted,
  type Marks,
  mark,
  type NodeStatus,
  type OpenAdmission,
  openAdmission,
  type Roster,
  readFloor,
  readmit,
  status,
} from "../record.js";
import type { SeenNode, Step } from "./plan.js";

/** What a new fleet allows if no locker was configured with another. */
const DEFAULT_MAX_TTL_MS = 60_000;

export interface ReadStatus {
  readonly node: RedisNode;
  readonly status: NodeStatus;
}

/** Reads the status of every node that can be asked. One that does not answer is not seen. */
export async function readStatuses(fleet: RedisFleet, nodes = fleet.all): Promise<readonly ReadStatus[]> {
  const statuses = await Promise.all(
    nodes.map(async (node) => {
      const answer = await answered(() => node.connection.run(status), node);
      if (answer === undefined) return [];
      node.noteStatus(answer);
      return [{ node, status: answer }];
    }),
  );
  return statuses.flat();
}

/**
 * What the plan needs to know of a node; opens its admission if it is not admitted. undefined: it
 * did not answer.
 */
export async function examineNode(fleet: RedisFleet, node: RedisNode, seen: NodeStatus): Promise<SeenNode | "changed since" | undefined> {
  const member = fleet.memberAt(node);
  const named = { name: node.name, status: seen, ...(member === undefined ? {} : { member }) };
  if (isAdmitted(seen) && seen.admission?.generation === fleet.generation) return named;
  return answered(async () => {
    const made = await openAdmissionOf(fleet, node);
    // Since the status was read it was admitted by another locker, its server was restarted, or its
    // memory was lost (its id is new): the status says nothing about the memory that the nonce
    // pins.
    if (made === undefined || made.runId !== seen.runId || (seen.id !== undefined && made.id !== seen.id)) return "changed since";
    const lostForMs = Math.max(made.lostForMs, node.seenForMs(made.nonce));
    return { ...named, opened: { ...made, lostForMs }, isDurable: await isDurable(node, seen) };
  }, node);
}

/** Also asks the node to join the fleet that this locker would found. */
export function openAdmissionOf(fleet: RedisFleet, node: RedisNode, founding = ""): Promise<OpenAdmission | undefined> {
  const { clock } = fleet;
  const given = {
    nonce: clock.secret(),
    id: clock.secret(),
    wallMs: clock.wallMs(),
    maxTtlMs: fleet.askedMaxTtlMs ?? DEFAULT_MAX_TTL_MS,
    // What it was admitted for before it became a member, or became one again, counts no more.
    sinceGeneration: fleet.memberAt(node)?.since ?? 0,
    founding,
  };
  return node.connection.run(openAdmission(given));
}

/**
 * Whether there was a moment at which all of these stood as they were seen: not admitted, and with
 * the same memory. Their admissions were opened one by one, and the first may be admitted when the
 * last is opened; but if every nonce is still there after the last was stored, they were all there
 * together then. Otherwise those that did not, or that join another fleet.
 */
export async function notTogether(fleet: RedisFleet, seen: readonly SeenNode[], founding?: string): Promise<readonly NotTogether[]> {
  const looks = await Promise.all(
    seen.map(async ({ name, opened: made }): Promise<NotTogether | undefined> => {
      const node = nodeCalled(fleet, name);
      const now = node === undefined ? undefined : await answered(() => openAdmissionOf(fleet, node, founding), node);
      if (now === undefined || now.runId !== made?.runId || now.nonce !== made.nonce) return { name, why: "changed" };
      // Members of a fleet that is known are taken by the nonce alone, as they are when they are
      // rebuilt: what late founders wrote beside it may stay for ever.
      return founding === undefined || now.founding === founding ? undefined : { name, why: "another fleet" };
    }),
  );
  return looks.flatMap((look) => look ?? []);
}

interface NotTogether {
  readonly name: string;
  readonly why: "changed" | "another fleet";
}

/**
 * Everything this server answers is on its disk, and no other server will answer in its place. A
 * server that hides its settings counts as not durable. One with replicas does as well: a promoted
 * replica has the record of its master and a log of its own, but not the master's last grants.
 */
export function isDurable(node: RedisNode, seen: NodeStatus): Promise<boolean> {
  return readsDurable(node, seen).catch(() => false);
}

/** The same; rejects if the server hides its settings. */
export async function readsDurable({ connection }: RedisNode, { isReplicated }: NodeStatus): Promise<boolean> {
  if (isReplicated) return false;
  const settings = ["appendonly", "appendfsync", "no-appendfsync-on-rewrite"];
  const [log, sync, sparesRewrites] = await Promise.all(settings.map((name) => connection.setting(name)));
  // The last one, where it is yes: while the log is rewritten nothing is synced.
  return log === "yes" && sync === "always" && sparesRewrites === "no";
}

export function nodeCalled(fleet: RedisFleet, name: string): RedisNode | undefined {
  return fleet.members.find((node) => node.name === name);
}

/** Takes the steps that need not wait any more; true if a node was admitted. */
export async function admitAll(fleet: RedisFleet, steps: readonly Exclude<Step, { kind: "found" | "blocked" }>[]): Promise<boolean> {
  // The wall clock is right only if so many had lost their memory at the same time.
  const among = steps.find((step) => step.kind === "outlived")?.among;
  if (among !== undefined && (await notTogether(fleet, among)).length > 0) return false;
  const visits = await readFloors(fleet, steps);
  // After the floors: a mark that is stored on those nodes from then on does not count.
  const marks = await readMarks(fleet, visits);
  const highest = Math.max(0, ...visits.values());
  const admitted = await Promise.all(
    steps.map(async (step) => {
      if (step.kind === "rebuilt" && visits.size < step.needed) return false;
      if (!(await giveMarks(fleet, step.node, marks))) return false;
      const floor = Math.max(highest, step.kind === "outlived" ? lowestByClock(step) : 0);
      return admitOne(fleet, step.node, { floor, way: step.kind === "outlived" ? "bootstrap" : step.kind });
    }),
  );
  return admitted.includes(true);
}

/**
 * The wall clock, and the floors left in records that do not count: a floor may be too high, never
 * too low.
 */
function lowestByClock({ node, among }: Extract<Step, { kind: "outlived" }>): number {
  return Math.max(node.opened?.proposedFloor ?? 0, ...among.map(({ status: seen }) => seen.floor ?? 0));
}

/** Of the others: no node for which a step is taken is visited. */
async function readFloors(fleet: RedisFleet, steps: readonly { readonly node: SeenNode }[]): Promise<Map<string, number>> {
  const asking = new Set(steps.map(({ node }) => node.name));
  const visits = new Map<string, number>();
  await Promise.all(
    fleet.members.map(async (node) => {
      if (asking.has(node.name)) return;
      const visited = await answered(() => node.connection.run(readFloor(fleet.clock.secret(), fleet.generation)), node);
      if (visited !== undefined) visits.set(node.name, visited);
    }),
  );
  return visits;
}

/** The highest marks of those that were visited; one that does not answer was not visited. */
async function readMarks(fleet: RedisFleet, visits: Map<string, number>): Promise<Marks> {
  const highest = new Map<string, number>();
  await Promise.all(
    fleet.members.map(async (node) => {
      if (!visits.has(node.name)) return;
      const stored = await answered(() => node.connection.run(mark(new Map())), node);
      if (stored === undefined) visits.delete(node.name);
      for (const [name, number] of stored?.marks ?? []) highest.set(name, Math.max(number, highest.get(name) ?? 0));
    }),
  );
  return highest;
}

async function giveMarks(fleet: RedisFleet, { name }: SeenNode, marks: Marks): Promise<boolean> {
  const node = nodeCalled(fleet, name);
  if (node === undefined || marks.size === 0) return node !== undefined;
  return (await answered(() => node.connection.run(mark(marks)), node)) !== undefined;
}

/** `isNew`: the members have the ids with which their admissions were opened. */
export type Membership = Pick<AdmitArguments, "fleet" | "roster"> & { readonly isNew?: true };

interface Admitting {
  readonly floor: number;
  readonly way: AdmissionWay;
  /** Of a fleet that is being founded. */
  readonly membership?: Membership;
  readonly founding?: string;
}

export async function admitOne(fleet: RedisFleet, seen: SeenNode, admitting: Admitting): Promise<boolean> {
  const { clock } = fleet;
  const node = nodeCalled(fleet, seen.name);
  const { floor, way, founding = "", membership = knownFleet(fleet) } = admitting;
  if (node === undefined || seen.opened === undefined || membership === undefined) return false;
  const { isNew, ...fleetOf } = membership;
  const { runId, nonce, id } = seen.opened;
  const memory = { runId, nonce, floor, epoch: clock.secret() };
  const given: AdmitArguments = {
    ...memory,
    id: (isNew ? undefined : seen.member?.id) ?? (isCopy(fleet.members, node, id) ? clock.secret() : id),
    durable: seen.isDurable === true ? "durable" : "not durable",
    founding,
    ...fleetOf,
  };
  const call = way === "durable" ? readmit(memory) : admit(given);
  const admittedAt = await answered(() => node.connection.run(call), node);
  if (admittedAt === undefined) return false;
  fleet.onEvent({ kind: "admitted", node: node.name, way, floor: admittedAt });
  return true;
}

/** Another node has this id already: the disk of one was copied to the other. */
function isCopy(nodes: readonly RedisNode[], node: RedisNode, id: string): boolean {
  return nodes.some((other) => other !== node && other.status?.id === id);
}

function knownFleet({ roster, id }: RedisFleet): Membership | undefined {
  return roster === undefined || id === undefined ? undefined : { fleet: id, roster };
}

/** The node's answer, or undefined if it cannot be asked, or refuses: `blockedBecause` says why. */
export async function answered<T>(ask: () => Promise<T>, node: RedisNode): Promise<T | undefined> {
  if (!node.connection.isUp) return undefined;
  try {
    return await ask();
  } catch (error) {
    node.blockedBecause = causeOf(error);
    return undefined;
  }
}

/**
 * Founds a fleet of nodes that remember nothing: all that are configured, or all but those that the
 * operator leaves out. Every locker that does so at the same time reads the same open admissions, and
 * so founds the same fleet with the same floor. `absent` are members that the operator leaves out:
 * they are admitted when they come, like nodes that lost their memory.
 */
export async function foundFleet(fleet: RedisFleet, nodes: readonly SeenNode[], absent: readonly string[] = []): Promise<Founded> {
  const opened = nodes.flatMap(({ opened: made }) => made ?? []);
  const membership = membershipOf(fleet, nodes, absent);
  // A node that is asked by founders with different lists joins the first, and the others are not
  // founded: lists that share a node may each have a majority without it.
  const founding = foundingOf(fleet, membership.roster);
  // A node whose admission was opened after another had been admitted may have forgotten leases of
  // this very fleet.
  const others = await notTogether(fleet, nodes, founding);
  const joined = others.filter(({ why }) => why === "another fleet").map(({ name }) => name);
  if (joined.length > 0) return { kind: "blocked", nodes, reason: anotherList(fleet, joined) };
  if (others.length > 0) return { kind: "not yet" };
  const floor = Math.max(...opened.map(({ proposedFloor }) => proposedFloor), ...nodes.map(({ status: seen }) => seen.floor ?? 0));
  const way = "bootstrap";
  const admitted = await Promise.all(nodes.map((node) => admitOne(fleet, node, { floor, way, membership, founding })));
  return { kind: admitted.includes(true) ? "founded" : "not yet" };
}

type Founded = { readonly kind: "founded" | "not yet" } | Extract<Step, { kind: "blocked" }>;

/** Ends with 16 characters that are the same for every locker with the same list of nodes. */
function foundingOf(fleet: RedisFleet, { members }: Roster): string {
  const list = fleet.configured.map(({ address }) => address).sort();
  const key = createHash("sha256").update(list.join(" ")).digest("base64url").slice(0, 16);
  return `${members.map(({ id }) => id).join(" ")}|${key}`;
}

function anotherList(fleet: RedisFleet, names: readonly string[]): string {
  const here = fleet.configured.map(({ address }) => address).join(", ");
  return `${names.join(" and ")} would be founded into another fleet by a locker with another list of nodes, or with other addresses of the same (here: ${here}); give every locker the same list, or let one found the fleet before the others start; then delete ${fleet.keys.node} there`;
}

function membershipOf(fleet: RedisFleet, founders: readonly SeenNode[], absent: readonly string[]): Membership {
  const opened = founders.flatMap(({ opened: made }: { opened?: OpenAdmission }) => made ?? []);
  const maxTtlMs = Math.max(...opened.map(({ proposedMaxTtlMs }) => proposedMaxTtlMs));
  const members = founders.map((node) => ({
    id: node.opened?.id ?? "",
    address: nodeCalled(fleet, node.name)?.address ?? "",
    since: 1,
  }));
  for (const address of absent) members.push({ id: fleet.clock.secret(), address, since: 1 });
  // In one order for all founders.
  members.sort((one, other) => (one.id < other.id ? -1 : 1));
  const ids = members.map(({ id }) => id).join(" ");
  return {
    fleet: createHash("sha256").update(ids).digest("base64url").slice(0, 16),
    isNew: true,
    roster: { generation: 1, members, maxTtlMs, formerMaxTtlMs: maxTtlMs },
  };
}
