// Faults of the Redis nodes (killed, wiped, paused, clocks set), and what the nodes have stored, read past the lock.
// Invariant: at most a minority of memories is lost at a time, and the next only after those nodes were readmitted; that
// is the condition under which tokens are in order and one holder is alone (T1, T2, L2). One fault at a time on each node.
import { setTimeout as sleep } from "node:timers/promises";
import type { RedisFleet, RedisNode } from "@palisade/testkit";
import { type CounterSample, nowMs } from "../history.js";
import { type FaultLog, type PlannedFault, SPARED_NODES } from "./schedule.js";

const NODE_KEY = "{palisade}:node";
const LOCK_KEYS = "{palisade}:lock:*";
const LOOK_EVERY_MS = 20;

interface NodeFaultSettings {
  readonly fleet: RedisFleet;
  readonly log: FaultLog;
  /** Resolves when the node votes again; false if that is not to be waited for any longer. */
  readmitted(node: RedisNode, giveUp: AbortSignal): Promise<boolean>;
}

export class NodeFaults {
  /** Nodes that no locker readmitted. */
  readonly notReadmitted: string[] = [];
  readonly #settings: NodeFaultSettings;
  readonly #busy = new Set<RedisNode>();
  readonly #wiped = new Set<RedisNode>();
  readonly #memories = new Map<RedisNode, number>();
  /** Nodes that are no members, or are about to leave. */
  readonly #spared = new Set<RedisNode>();
  #clockIsFixed = false;

  constructor(settings: NodeFaultSettings) {
    this.#settings = settings;
  }

  isBusy(node: RedisNode): boolean {
    return this.#busy.has(node);
  }

  /** How often it has lost its memory. */
  memoryOf(node: RedisNode): number {
    return this.#memories.get(node) ?? 0;
  }

  /** It is no member: it is not broken, since no locker would readmit it. */
  spare(node: RedisNode): void {
    this.#spared.add(node);
  }

  /** For a change of members: false if one of them is broken, or as many are as may be. */
  hold(newcomer: RedisNode | undefined, leaving: RedisNode | undefined): boolean {
    const isBroken = [newcomer, leaving].some((node) => node !== undefined && this.#busy.has(node));
    if (isBroken || (newcomer !== undefined && this.#busy.size >= SPARED_NODES)) return false;
    if (newcomer !== undefined) this.#busy.add(newcomer);
    if (leaving !== undefined) this.#spared.add(leaving);
    return true;
  }

  /** The change is done, and the newcomer votes. */
  letGo(newcomer: RedisNode | undefined): void {
    if (newcomer === undefined) return;
    this.#busy.delete(newcomer);
    this.#spared.delete(newcomer);
  }

  /** Left out if one of the nodes has a fault already, or too many have. */
  async inject(fault: PlannedFault, giveUp: AbortSignal): Promise<void> {
    const { fleet, log } = this.#settings;
    const { kind, limit } = fault;
    const nodes = fault.nodes.map((index) => fleet.nodes[index]).filter((node) => node !== undefined);
    const forgets = kind === "nodes wiped"; // A killed server has everything on disk.
    if (
      (forgets && this.#wiped.size > 0) ||
      (kind === "node clock shifted" && this.#clockIsFixed) ||
      nodes.some((node) => this.#busy.has(node) || this.#spared.has(node)) ||
      this.#busy.size + nodes.length > limit
    )
      return log.leaveOut(kind);
    for (const node of nodes) {
      this.#busy.add(node);
      if (forgets) {
        this.#wiped.add(node);
        this.#memories.set(node, this.memoryOf(node) + 1);
      }
    }
    const ends = nodes.map(({ name }) => log.begin({ kind, target: name }));
    try {
      await Promise.all(nodes.map((node) => this.#injectOne(node, fault, giveUp)));
    } finally {
      for (const end of ends) end();
      for (const node of nodes) this.#busy.delete(node);
    }
  }

  async #injectOne(node: RedisNode, fault: PlannedFault, giveUp: AbortSignal): Promise<void> {
    const { kind, lastsMs } = fault;
    if (kind === "node clock shifted") return await this.#shiftClock(node, fault.byMs);
    if (kind === "node paused") {
      await node.pause();
      await sleep(lastsMs);
      return await node.resume();
    }
    await node.kill();
    await sleep(lastsMs);
    await node.restart({ forget: kind === "nodes wiped" });
    if (!(await this.#settings.readmitted(node, giveUp))) this.notReadmitted.push(node.name);
    this.#wiped.delete(node);
  }

  async #shiftClock(node: RedisNode, byMs: number): Promise<void> {
    const fromAt = nowMs();
    await node.shiftClock(byMs).catch((error: Error) => {
      this.#clockIsFixed = error.message.includes("cannot be moved here");
      if (!this.#clockIsFixed) throw error;
    });
    if (byMs > 0) this.#settings.log.clockJumps.push({ fromAt, untilAt: nowMs() });
  }
}

/** Resolves when the node votes again since its last start; false if the signal came first. */
export async function readmitted(node: RedisNode, signal: AbortSignal): Promise<boolean> {
  for (; !signal.aborted; await sleep(LOOK_EVERY_MS)) {
    const server = await node.cli("INFO", "server").catch(noAnswer);
    const runId = /run_id:(\w+)/.exec(String(server))?.[1];
    if (runId !== undefined && (await admission(node)).startsWith(`+${runId.slice(0, -1)}`)) return true;
  }
  return false;
}

/** Resolves when the node votes in that generation or a later one; false if the signal came. */
export async function votesIn(node: RedisNode, generation: number, signal: AbortSignal): Promise<boolean> {
  for (; !signal.aborted; await sleep(LOOK_EVERY_MS)) {
    const admitted = await admission(node);
    if (admitted.startsWith("+") && Number.parseInt(admitted.slice(55), 10) >= generation) return true;
  }
  return false;
}

/** A mark, + where the node votes; the run id without its last digit; the counter floor; the generation. */
async function admission(node: RedisNode): Promise<string> {
  return String(await node.cli("HGET", NODE_KEY, "admitted").catch(noAnswer));
}

/** The lock keys on all nodes, as "node key". */
export async function lockKeys(nodes: readonly RedisNode[]): Promise<string[]> {
  const keys = await Promise.all(
    nodes.map(async (node) => ((await node.cli("KEYS", LOCK_KEYS)) as string[]).map((key) => `${node.name} ${key}`)),
  );
  return keys.flat();
}

// A node that was killed under the question.
function noAnswer(): undefined {}

/** Of all nodes that have no fault now. */
export async function readCounters(fleet: RedisFleet, resource: string, memories: NodeFaults): Promise<CounterSample[]> {
  const healthy = fleet.nodes.filter((node) => !memories.isBusy(node));
  const samples = await Promise.all(healthy.map((node) => readOne(node, resource, memories)));
  return samples.filter((sample) => sample !== undefined);
}

/** Undefined if the node did not answer, or lost its memory meanwhile. */
async function readOne(node: RedisNode, resource: string, memories: NodeFaults): Promise<CounterSample | undefined> {
  const memory = memories.memoryOf(node);
  // Each of them only rises by itself, so that they need not be read at one moment.
  const questions = [node.cli("HGET", "{palisade}:node", "floor"), node.cli("GET", `{palisade}:token:${resource}`)];
  const answers = await Promise.all(questions).catch(noAnswer);
  if (answers === undefined || memory !== memories.memoryOf(node)) return undefined;
  const [floor, counter] = answers;
  return { node: node.name, memory, floor: Number(floor ?? 0), counter: Number(counter ?? 0) };
}
