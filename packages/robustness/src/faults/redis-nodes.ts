// Faults of the Redis nodes: killed, wiped, paused, clocks set. Invariant: at most a minority of
// memories is lost at a time, and the next only after those nodes were readmitted; that is the
// condition under which T1, T2 and L2 are promised. One fault at a time on each node.
import { setTimeout as sleep } from "node:timers/promises";
import type { RedisFleet, RedisNode } from "@palisade/testkit";
import { nowMs } from "../history/records.js";
import type { FaultLog } from "./fault-log.js";
import { SPARED_NODES } from "./schedule.js";

interface NodeFaultSettings {
  readonly fleet: RedisFleet;
  readonly log: FaultLog;
  /** Whether a killed server has everything on disk; if not, a kill is a loss of memory. */
  readonly killKeepsMemory: boolean;
  /** Resolves when the node votes again; false if that is not to be waited for any longer. */
  readonly readmitted: (node: RedisNode) => Promise<boolean>;
}

interface Targets {
  readonly indexes: readonly number[];
  /** How many nodes may have a fault at once. */
  readonly limit: number;
  readonly by: "plan" | "ambush";
}

const LOOK_EVERY_MS = 10;

export class NodeFaults {
  /** Nodes that no locker readmitted. */
  readonly notReadmitted: string[] = [];
  readonly #settings: NodeFaultSettings;
  readonly #busy = new Set<RedisNode>();
  readonly #wiped = new Set<RedisNode>();
  readonly #memories = new Map<RedisNode, number>();
  readonly #afterwards = new Set<Promise<void>>();
  /** Nodes that are no members, or are about to leave. */
  readonly #spared = new Set<RedisNode>();
  #clockIsFixed = false;
  #isQuiet = false;

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

  async kill(index: number, lastsMs: number, limit: number): Promise<void> {
    const { killKeepsMemory, log } = this.#settings;
    if (!killKeepsMemory && this.#wiped.size > 0) return log.leaveOut("node killed");
    await this.#during("node killed", { indexes: [index], limit, by: "plan" }, async ([node]) => {
      if (node === undefined) return;
      if (!killKeepsMemory) this.#noteWiped(node);
      await node.kill();
      await sleep(lastsMs);
      await node.restart();
      await this.#readmit(node);
    });
  }

  async wipe(indexes: readonly number[], lastsMs: number, limit: number): Promise<void> {
    if (this.#wiped.size > 0) return this.#settings.log.leaveOut("nodes wiped");
    await this.#during("nodes wiped", { indexes, limit, by: "plan" }, async (nodes) => {
      await Promise.all(nodes.map(async (node) => this.#readmit(await this.#wipeOne(node, lastsMs))));
    });
  }

  /**
   * Wipes them one right after the other, and resolves as soon as they are up, before they are
   * readmitted; false if too much is broken already.
   */
  async wipeInAmbush(indexes: readonly number[], gapMs: number): Promise<boolean> {
    if (this.#wiped.size > 0) return false;
    return new Promise((resolve, reject) => {
      let isUp = false;
      const targets = { indexes, limit: SPARED_NODES, by: "ambush" } as const;
      const fault = this.#during("nodes wiped in ambush", targets, async (nodes) => {
        await Promise.all(nodes.map((node, i) => this.#wipeOne(node, i * gapMs)));
        isUp = true;
        resolve(true);
        await Promise.all(nodes.map((node) => this.#readmit(node)));
      });
      const afterwards = fault.then(() => isUp || resolve(false), reject).then(() => void this.#afterwards.delete(afterwards));
      this.#afterwards.add(afterwards);
    });
  }

  async pause(index: number, lastsMs: number, limit: number): Promise<void> {
    await this.#during("node paused", { indexes: [index], limit, by: "plan" }, async ([node]) => {
      await node?.pause();
      await sleep(lastsMs);
      await node?.resume();
    });
  }

  async shiftClock(index: number, byMs: number): Promise<void> {
    await this.#shiftClocks({ indexes: [index], limit: SPARED_NODES, by: "plan" }, byMs);
  }

  /** Sets clocks forward in ambush; false if that cannot be done here. */
  shiftClocksInAmbush(indexes: readonly number[], byMs: number): Promise<boolean> {
    return this.#shiftClocks({ indexes, limit: SPARED_NODES, by: "ambush" }, byMs);
  }

  /** Runs `trap` while no node has a fault, and keeps planned ones away; false after `withinMs`. */
  async quiet(withinMs: number, trap: () => Promise<boolean>): Promise<boolean> {
    this.#isQuiet = true;
    try {
      for (const giveUpAt = performance.now() + withinMs; this.#busy.size > 0; await sleep(LOOK_EVERY_MS))
        if (performance.now() > giveUpAt) return false;
      return await trap();
    } finally {
      this.#isQuiet = false;
    }
  }

  /** When what goes on after `wipeInAmbush` has come to its end. */
  async settled(): Promise<void> {
    await Promise.all(this.#afterwards);
  }

  async #shiftClocks(targets: Targets, byMs: number): Promise<boolean> {
    const { log } = this.#settings;
    let isShifted = false;
    if (this.#clockIsFixed) log.leaveOut("node clock shifted");
    else
      await this.#during("node clock shifted", targets, async (nodes) => {
        const fromAt = nowMs();
        const outcomes = await Promise.allSettled(nodes.map((node) => node.shiftClock(byMs)));
        if (byMs > 0) log.clockJumps.push({ fromAt, untilAt: nowMs() });
        const failures = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason as Error] : []));
        this.#clockIsFixed = failures.some(({ message }) => message.includes("cannot be moved here"));
        if (failures[0] !== undefined && !this.#clockIsFixed) throw failures[0];
        isShifted = failures.length === 0;
      });
    return isShifted;
  }

  async #wipeOne(node: RedisNode, lastsMs: number): Promise<RedisNode> {
    this.#noteWiped(node);
    await node.kill();
    await sleep(lastsMs);
    await node.restart({ forget: true });
    return node;
  }

  #noteWiped(node: RedisNode): void {
    this.#wiped.add(node);
    this.#memories.set(node, this.memoryOf(node) + 1);
  }

  async #readmit(node: RedisNode): Promise<void> {
    if (!(await this.#settings.readmitted(node))) this.notReadmitted.push(node.name);
    this.#wiped.delete(node);
  }

  async #during(kind: string, { indexes, limit, by }: Targets, inject: (nodes: readonly RedisNode[]) => Promise<void>): Promise<void> {
    const { fleet, log } = this.#settings;
    const nodes = indexes.map((index) => fleet.nodes[index]).filter((node) => node !== undefined);
    if (by === "plan" && this.#isQuiet) return log.leaveOut(kind);
    if (nodes.some((node) => this.#busy.has(node) || this.#spared.has(node)) || this.#busy.size + nodes.length > limit)
      return log.leaveOut(kind);
    for (const node of nodes) this.#busy.add(node);
    const ends = nodes.map(({ name }) => log.begin({ kind, place: "nodes", target: name }));
    try {
      await inject(nodes);
    } finally {
      for (const end of ends) end();
      for (const node of nodes) this.#busy.delete(node);
    }
  }
}
