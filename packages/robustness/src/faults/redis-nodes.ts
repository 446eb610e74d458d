// What happens to the Redis servers of a run. Keeps the condition of the promise: at most a minority of memories is lost at a time, and the next only after those were
// readmitted. One fault at a time on each node.
import { setTimeout as sleep } from "node:timers/promises";
import type { RedisFleet, RedisNode } from "@palisade/testkit";
import { nowMs } from "../history/lease-record.js";
import type { FaultLog } from "./fault-log.js";

/** So many nodes may be down, stopped or not believed at once: as many as a quorum of five can spare. */
const AT_ONCE = 2;

export interface NodeStrikesSettings {
  readonly fleet: RedisFleet;
  readonly log: FaultLog;
  /** Whether a killed server has everything on its disk; if not, a kill is a loss of memory as well. */
  readonly killKeepsMemory: boolean;
  /** Resolves when the node votes again; false if that is not to be waited for any longer. */
  readonly readmitted: (node: RedisNode) => Promise<boolean>;
}

type Strike = (nodes: readonly RedisNode[]) => Promise<void>;

interface Order {
  readonly indexes: readonly number[];
  /** How many nodes may be in trouble at once. */
  readonly limit: number;
  readonly by: "nemesis" | "ambush";
}

const LOOK_EVERY_MS = 10;

export class NodeStrikes {
  /** Nodes that nobody readmitted. */
  readonly forsaken: string[] = [];
  readonly #settings: NodeStrikesSettings;
  readonly #busy = new Set<RedisNode>();
  readonly #forgetful = new Set<RedisNode>();
  readonly #memories = new Map<RedisNode, number>();
  readonly #afterwards = new Set<Promise<void>>();
  #clockIsFixed = false;
  #isQuiet = false;

  constructor(settings: NodeStrikesSettings) {
    this.#settings = settings;
  }

  isBusy(node: RedisNode): boolean {
    return this.#busy.has(node);
  }

  /** How often it has lost its memory. */
  memoryOf(node: RedisNode): number {
    return this.#memories.get(node) ?? 0;
  }

  /** `limit`: how many nodes may be in trouble at once, where it is to be more than a quorum can spare. */
  async kill(index: number, lastsMs: number, limit = AT_ONCE): Promise<void> {
    if (!this.#settings.killKeepsMemory && this.#forgetful.size > 0) return this.#settings.log.leaveOut("node killed");
    await this.#while("node killed", { indexes: [index], limit, by: "nemesis" }, async ([node]) => {
      if (node === undefined) return;
      if (!this.#settings.killKeepsMemory) this.#forget(node);
      await node.kill();
      await sleep(lastsMs);
      await node.restart();
      await this.#readmit(node);
    });
  }

  async wipe(indexes: readonly number[], lastsMs: number, limit = AT_ONCE): Promise<void> {
    if (this.#forgetful.size > 0) return this.#settings.log.leaveOut("nodes wiped");
    await this.#while("nodes wiped", { indexes, limit, by: "nemesis" }, async (nodes) => {
      await Promise.all(nodes.map(async (node) => this.#readmit(await this.#wipeOne(node, lastsMs))));
    });
  }

  /** Wipes them one right after the other, and resolves as soon as they are up, before they are readmitted; false if too much is broken already. */
  async surprise(indexes: readonly number[], gapMs: number): Promise<boolean> {
    if (this.#forgetful.size > 0) return false;
    return new Promise((resolve, reject) => {
      let isUp = false;
      const strike = this.#while("nodes wiped in ambush", { indexes, limit: AT_ONCE, by: "ambush" }, async (nodes) => {
        await Promise.all(nodes.map((node, i) => this.#wipeOne(node, i * gapMs)));
        isUp = true;
        resolve(true);
        await Promise.all(nodes.map((node) => this.#readmit(node)));
      });
      const afterwards = strike.then(() => isUp || resolve(false), reject).then(() => void this.#afterwards.delete(afterwards));
      this.#afterwards.add(afterwards);
    });
  }

  async pause(index: number, lastsMs: number, limit = AT_ONCE): Promise<void> {
    await this.#while("node paused", { indexes: [index], limit, by: "nemesis" }, async ([node]) => {
      await node?.pause();
      await sleep(lastsMs);
      await node?.resume();
    });
  }

  async shiftClock(index: number, byMs: number): Promise<void> {
    await this.#shiftClocks({ indexes: [index], limit: AT_ONCE, by: "nemesis" }, byMs);
  }

  /** Sets clocks forward in ambush; false if that cannot be done here. */
  leap(indexes: readonly number[], byMs: number): Promise<boolean> {
    return this.#shiftClocks({ indexes, limit: AT_ONCE, by: "ambush" }, byMs);
  }

  /** When all nodes are well, and as long as the trap lasts, none is struck but by the trap itself. False if they do not get well in time. */
  async quiet(patienceMs: number, trap: () => Promise<boolean>): Promise<boolean> {
    this.#isQuiet = true;
    try {
      for (const givenUpAt = performance.now() + patienceMs; this.#busy.size > 0; await sleep(LOOK_EVERY_MS))
        if (performance.now() > givenUpAt) return false;
      return await trap();
    } finally {
      this.#isQuiet = false;
    }
  }

  async #shiftClocks(order: Order, byMs: number): Promise<boolean> {
    let isShifted = false;
    if (this.#clockIsFixed) this.#settings.log.leaveOut("node clock shifted");
    else
      await this.#while("node clock shifted", order, async (nodes) => {
        const fromAt = nowMs();
        const outcomes = await Promise.allSettled(nodes.map((node) => node.shiftClock(byMs)));
        if (byMs > 0) this.#settings.log.leaps.push({ fromAt, untilAt: nowMs() });
        const failures = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason as Error] : []));
        this.#clockIsFixed = failures.some(({ message }) => message.includes("cannot be moved here"));
        if (failures[0] !== undefined && !this.#clockIsFixed) throw failures[0];
        isShifted = failures.length === 0;
      });
    return isShifted;
  }

  /** When what goes on after `surprise` has come to its end. */
  async settled(): Promise<void> {
    await Promise.all(this.#afterwards);
  }

  async #wipeOne(node: RedisNode, lastsMs: number): Promise<RedisNode> {
    this.#forget(node);
    await node.kill();
    await sleep(lastsMs);
    await node.restart({ forget: true });
    return node;
  }

  #forget(node: RedisNode): void {
    this.#forgetful.add(node);
    this.#memories.set(node, this.memoryOf(node) + 1);
  }

  async #readmit(node: RedisNode): Promise<void> {
    if (!(await this.#settings.readmitted(node))) this.forsaken.push(node.name);
    this.#forgetful.delete(node);
  }

  async #while(kind: string, { indexes, limit, by }: Order, happens: Strike): Promise<void> {
    const { fleet, log } = this.#settings;
    const nodes = indexes.map((index) => fleet.nodes[index]).filter((node) => node !== undefined);
    if (by === "nemesis" && this.#isQuiet) return log.leaveOut(kind);
    if (nodes.some((node) => this.#busy.has(node)) || this.#busy.size + nodes.length > limit) return log.leaveOut(kind);
    for (const node of nodes) this.#busy.add(node);
    const ends = nodes.map(({ name }) => log.begin({ kind, place: "nodes", target: name }));
    try {
      await happens(nodes);
    } finally {
      for (const end of ends) end();
      for (const node of nodes) this.#busy.delete(node);
    }
  }
}
