// What happens to the Redis servers. Keeps the condition of the promise: at most a minority of memories is lost at a time, and the next only after those were readmitted. One
// fault at a time on each node.
import { setTimeout as sleep } from "node:timers/promises";
import type { RedisFleet, RedisNode } from "@palisade/testkit";
import { believed } from "../node-belief.js";
import { nowMs } from "../tenure.js";
import type { FaultLog } from "./fault-log.js";

/** So many nodes may be down, stopped or not believed at once. */
const AT_ONCE = 2;

export class NodeStrikes {
  /** Nodes that nobody readmitted. */
  readonly forsaken: string[] = [];
  readonly #fleet: RedisFleet;
  readonly #log: FaultLog;
  readonly #hopeless: AbortSignal;
  readonly #busy = new Set<RedisNode>();
  #forgetful = 0;
  #clockIsFixed = false;

  constructor(fleet: RedisFleet, log: FaultLog, hopeless: AbortSignal) {
    this.#fleet = fleet;
    this.#log = log;
    this.#hopeless = hopeless;
  }

  async kill(index: number, lastsMs: number): Promise<void> {
    await this.#while("node killed", [index], async ([node]) => {
      await node?.kill();
      await sleep(lastsMs);
      await node?.restart();
      await this.#readmitted(node);
    });
  }

  async wipe(indexes: readonly number[], lastsMs: number): Promise<void> {
    if (this.#forgetful + indexes.length > AT_ONCE) return this.#log.leaveOut("nodes wiped");
    this.#forgetful += indexes.length;
    await this.#while("nodes wiped", indexes, async (nodes) => {
      await Promise.all(
        nodes.map(async (node) => {
          await node.kill();
          await sleep(lastsMs);
          await node.restart({ forget: true });
          await this.#readmitted(node);
        }),
      );
    });
    this.#forgetful -= indexes.length;
  }

  async pause(index: number, lastsMs: number): Promise<void> {
    await this.#while("node paused", [index], async ([node]) => {
      await node?.pause();
      await sleep(lastsMs);
      await node?.resume();
    });
  }

  async shiftClock(index: number, byMs: number): Promise<void> {
    if (this.#clockIsFixed) return this.#log.leaveOut("node clock shifted");
    await this.#while("node clock shifted", [index], async ([node]) => {
      const fromAt = nowMs();
      const refusal = await node?.shiftClock(byMs).then(
        () => undefined,
        (error: Error) => error,
      );
      if (byMs > 0) this.#log.leaps.push({ fromAt, untilAt: nowMs() });
      if (refusal?.message.includes("cannot be moved here")) this.#clockIsFixed = true;
      else if (refusal !== undefined) throw refusal;
    });
  }

  async #readmitted(node: RedisNode | undefined): Promise<void> {
    if (node !== undefined && !(await believed(node, this.#hopeless))) this.forsaken.push(node.name);
  }

  async #while(kind: string, indexes: readonly number[], happens: (nodes: readonly RedisNode[]) => Promise<void>): Promise<void> {
    const nodes = indexes.map((index) => this.#fleet.nodes[index]).filter((node) => node !== undefined);
    if (nodes.some((node) => this.#busy.has(node)) || this.#busy.size + nodes.length > AT_ONCE) return this.#log.leaveOut(kind);
    for (const node of nodes) this.#busy.add(node);
    const ends = nodes.map(({ name }) => this.#log.begin({ kind, place: "nodes", target: name }));
    try {
      await happens(nodes);
    } finally {
      for (const end of ends) end();
      for (const node of nodes) this.#busy.delete(node);
    }
  }
}
