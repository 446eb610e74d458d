// Reads how every node stands, and takes one step of an admission. The order inside a step is what
// makes tokens unique (T2). First, before this step, the admission was opened: its nonce pins the
// memory of the node and the run of its server. Then the floors of the others are read, and those
// nodes get new incarnations in the same script. Only then the floor is raised and the node
// admitted, if it still has that memory and its server that run.
import { createHash } from "node:crypto";
import type { Clock } from "../../platform/clock.js";
import type { AdmissionWay, NodeEvent } from "../../protocol/events.js";
import type { FleetRefusal } from "../../protocol/fleet.js";
import type { Keys } from "../keys.js";
import type { RedisNode } from "../node.js";
import {
  type AdmitArguments,
  admit,
  isAdmitted,
  type NodeStatus,
  type OpenAdmission,
  openAdmission,
  readFloor,
  status,
} from "../node-record.js";
import type { Expected } from "./fleet-check.js";
import type { SeenNode, Step } from "./plan.js";

export interface AdmissionSettings {
  readonly nodes: readonly RedisNode[];
  readonly keys: Keys;
  readonly clock: Clock;
  readonly expected: Expected;
  /** The name under which this locker leads admissions, so that others need not. */
  readonly lead: string;
  readonly onEvent: (event: NodeEvent) => void;
  readonly onRefusal: (refusal: FleetRefusal | undefined) => void;
}

/** What a new fleet allows if no locker was configured with another. */
const DEFAULT_MAX_TTL_MS = 60_000;
/** How long the other lockers leave an admission to the one that leads it. */
const LEAD_MS = 1_000;

/** Reads the status of every node that can be asked. One that does not answer is not seen. */
export async function readStatuses({ nodes, keys }: AdmissionSettings): Promise<readonly { node: RedisNode; status: NodeStatus }[]> {
  const statuses = await Promise.all(
    nodes.map(async (node) => {
      const answer = await answered(() => node.connection.run(status(keys)), node);
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
export async function examineNode(
  settings: AdmissionSettings,
  node: RedisNode,
  seen: NodeStatus,
): Promise<SeenNode | "changed since" | undefined> {
  if (isAdmitted(seen)) return { name: node.name, status: seen };
  return answered(async () => {
    const made = await openAdmissionOf(settings, node);
    // Since the status was read it was admitted by another locker, its server was restarted, or its
    // memory was lost (its id is new): the status says nothing about the memory that the nonce
    // pins.
    if (made === undefined || made.runId !== seen.runId || (seen.id !== undefined && made.id !== seen.id)) return "changed since";
    return { name: node.name, status: seen, opened: made, isDurable: await isDurable(node, seen) };
  }, node);
}

function openAdmissionOf({ keys, clock, expected, lead }: AdmissionSettings, node: RedisNode): Promise<OpenAdmission | undefined> {
  const given = {
    nonce: clock.secret(),
    id: clock.secret(),
    wallMs: clock.wallMs(),
    maxTtlMs: expected.maxTtlMs ?? DEFAULT_MAX_TTL_MS,
    lead,
    leadMs: LEAD_MS,
  };
  return node.connection.run(openAdmission(keys, given));
}

/**
 * Whether there was a moment at which all of these stood as they were seen: not admitted, and with
 * the same memory. Their admissions were opened one by one, and the first may be admitted when the
 * last is opened; but if every nonce is still there after the last was stored, they were all there
 * together then.
 */
async function stoodTogether(settings: AdmissionSettings, seen: readonly SeenNode[]): Promise<boolean> {
  const held = await Promise.all(
    seen.map(async ({ name, opened: made }) => {
      const node = settings.nodes.find((each) => each.name === name);
      const now = node === undefined ? undefined : await answered(() => openAdmissionOf(settings, node), node);
      return now !== undefined && now.runId === made?.runId && now.nonce === made.nonce;
    }),
  );
  return !held.includes(false);
}

/**
 * Everything this server answers is on its disk, and no other server will answer in its place. A
 * server that hides its settings counts as not durable. One with replicas does as well: a promoted
 * replica has the record of its master and a log of its own, but not the master's last grants.
 */
export async function isDurable({ connection, hasFailover }: RedisNode, { isReplicated }: NodeStatus): Promise<boolean> {
  if (hasFailover || isReplicated) return false;
  try {
    const [appendonly, appendfsync] = await Promise.all([connection.setting("appendonly"), connection.setting("appendfsync")]);
    return appendonly === "yes" && appendfsync === "always";
  } catch {
    return false;
  }
}

/** Takes the steps that need not wait any more; true if a node was admitted. */
export async function admitAll(
  settings: AdmissionSettings,
  steps: readonly Exclude<Step, { kind: "found" | "blocked" }>[],
): Promise<boolean> {
  // The wall clock is right only if so many had lost their memory at the same time.
  const among = steps.find((step) => step.kind === "outlived")?.among;
  if (among !== undefined && !(await stoodTogether(settings, among))) return false;
  const floors = await readFloors(settings, steps);
  const highest = Math.max(0, ...floors.values());
  const admitted = await Promise.all(
    steps.map((step) => {
      const others = [...floors.keys()].filter((name) => name !== step.node.name).length;
      if (step.kind === "rebuilt" && others < step.needed) return false;
      const floor = Math.max(highest, step.kind === "outlived" ? lowestByClock(step) : 0);
      return admitOne(settings, step.node, {
        floor,
        way: step.kind === "outlived" ? "bootstrap" : step.kind,
      });
    }),
  );
  return admitted.includes(true);
}

/**
 * Founds the fleet: every locker that does so at the same time reads the same open admissions, and
 * so founds the same fleet with the same floor.
 */
export async function found(settings: AdmissionSettings, nodes: readonly SeenNode[]): Promise<boolean> {
  // A node whose admission was opened after another had been admitted may have forgotten leases of
  // this very fleet.
  if (!(await stoodTogether(settings, nodes))) return false;
  const opened = nodes.flatMap(({ opened: made }) => made ?? []);
  const floor = Math.max(...opened.map(({ proposedFloor }) => proposedFloor), ...nodes.map(({ status: seen }) => seen.floor ?? 0));
  const admitted = await Promise.all(nodes.map((node) => admitOne(settings, node, { floor, way: "bootstrap", founders: nodes })));
  return admitted.includes(true);
}

/**
 * The wall clock, and the floors left in records that do not count: a floor may be too high, never
 * too low.
 */
function lowestByClock({ node, among }: Extract<Step, { kind: "outlived" }>): number {
  return Math.max(node.opened?.proposedFloor ?? 0, ...among.map(({ status: seen }) => seen.floor ?? 0));
}

async function readFloors(
  settings: AdmissionSettings,
  steps: readonly { readonly node: SeenNode }[],
): Promise<ReadonlyMap<string, number>> {
  const { nodes, keys, clock } = settings;
  const asking = new Set(steps.map(({ node }) => node.name));
  const floors = new Map<string, number>();
  await Promise.all(
    nodes.map(async (node) => {
      if (asking.has(node.name)) return;
      const floor = await answered(() => node.connection.run(readFloor(keys, clock.secret())), node);
      if (floor !== undefined) floors.set(node.name, floor);
    }),
  );
  return floors;
}

interface Admission {
  readonly floor: number;
  readonly way: AdmissionWay;
  /** All nodes of a fleet that is being founded. */
  readonly founders?: readonly SeenNode[];
}

async function admitOne(settings: AdmissionSettings, seen: SeenNode, { floor, way, founders }: Admission): Promise<boolean> {
  const node = settings.nodes.find(({ name }) => name === seen.name);
  if (node === undefined || seen.opened === undefined) return false;
  const given: AdmitArguments = {
    runId: seen.opened.runId,
    nonce: seen.opened.nonce,
    floor,
    incarnation: settings.clock.secret(),
    id: isCopy(settings, node, seen.opened.id) ? settings.clock.secret() : seen.opened.id,
    size: settings.expected.size,
    durable: seen.isDurable === true ? "durable" : "not durable",
    ...(founders === undefined ? knownFleet(settings) : newFleet(founders)),
  };
  const admittedAt = await answered(() => node.connection.run(admit(settings.keys, given)), node);
  if (admittedAt === undefined) return false;
  settings.onEvent({ kind: "admitted", node: node.name, way, floor: admittedAt });
  return true;
}

/** Another node has this id already: the disk of one was copied to the other. */
function isCopy({ nodes }: AdmissionSettings, node: RedisNode, id: string): boolean {
  return nodes.some((other) => other !== node && other.status?.id === id);
}

type Membership = Pick<AdmitArguments, "fleet" | "maxTtlMs">;

function knownFleet({ nodes }: AdmissionSettings): Membership {
  const member = nodes.find(({ status: seen }) => seen?.fleet !== undefined)?.status;
  return { fleet: member?.fleet ?? "", maxTtlMs: member?.maxTtlMs ?? DEFAULT_MAX_TTL_MS };
}

function newFleet(founders: readonly SeenNode[]): Membership {
  const member = founders.find(({ status: seen }) => seen.fleet !== undefined)?.status;
  if (member?.fleet !== undefined && member.maxTtlMs !== undefined) return { fleet: member.fleet, maxTtlMs: member.maxTtlMs };
  const opened = founders.flatMap(({ opened: made }: { opened?: OpenAdmission }) => made ?? []);
  const ids = opened.map(({ id }) => id).sort();
  return {
    fleet: createHash("sha256").update(ids.join(" ")).digest("base64url").slice(0, 16),
    maxTtlMs: Math.max(...opened.map(({ proposedMaxTtlMs }) => proposedMaxTtlMs)),
  };
}

/** The node's answer, or undefined if it cannot be asked: the next status says why. */
async function answered<T>(ask: () => Promise<T>, { connection }: RedisNode): Promise<T | undefined> {
  if (!connection.isUp) return undefined;
  try {
    return await ask();
  } catch {
    return undefined;
  }
}
