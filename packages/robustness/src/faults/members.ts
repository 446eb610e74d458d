// Members replaced, added and removed, one after the other, while everything else breaks. Half of
// the changes are left half-way by an operator who goes away, and finished by the next one. The
// newcomer counts as a node with a fault until it votes: what may be broken besides it is what a
// fleet of five can spare.
import { setTimeout as sleep } from "node:timers/promises";
import { createLocker, type MemberChange } from "@palisade/lock";
import type { FleetWay, RedisNode } from "@palisade/testkit";
import type { Chance } from "../chance.js";
import { waited } from "../history.js";
import { type NodeFaults, votesIn } from "./redis-nodes.js";
import type { FaultLog } from "./schedule.js";

interface MemberChangesSettings {
  /** The operator's way to the nodes, in their order. */
  readonly way: FleetWay;
  /** The first ones are the members that the fleet was founded with. */
  readonly nodes: readonly RedisNode[];
  readonly founders: number;
  readonly faults: NodeFaults;
  readonly log: FaultLog;
  readonly chance: Chance;
  readonly maxTtlMs: number;
}

interface Drawn {
  readonly kind: "member replaced" | "member added" | "member removed";
  readonly leaving: RedisNode | undefined;
  readonly newcomer: RedisNode | undefined;
}

const TRY_MS = 5_000;
const REST_MS = 50;
/** From the first question to the third answer it takes about so long. */
const HALF_WAY_MS = 12;

export class MemberChanges {
  readonly #settings: MemberChangesSettings;
  readonly #members: Set<RedisNode>;

  constructor(settings: MemberChangesSettings) {
    const { nodes, founders, faults } = settings;
    this.#settings = settings;
    this.#members = new Set(nodes.slice(0, founders));
    for (const node of nodes.slice(founders)) faults.spare(node);
  }

  /** One change after the other until the signal comes; the last one is finished. */
  async goOn(over: AbortSignal, giveUp: AbortSignal): Promise<void> {
    while (!over.aborted) {
      await this.#change(this.#draw(), giveUp);
      await waited(REST_MS, over);
    }
  }

  #draw(): Drawn {
    const { chance, founders, nodes, faults } = this.#settings;
    const members = [...this.#members];
    const outside = nodes.filter((node) => !this.#members.has(node) && !faults.isBusy(node));
    const healthy = members.filter((node) => !faults.isBusy(node));
    const kinds: Drawn["kind"][] = [];
    if (outside.length > 0 && healthy.length > 0) kinds.push("member replaced", "member added");
    if (members.length > founders && healthy.length > 0) kinds.push("member removed");
    const kind = kinds.length === 0 ? "member added" : chance.one(kinds);
    return {
      kind,
      leaving: kind === "member added" ? undefined : chance.one(healthy),
      newcomer: kind === "member removed" ? undefined : outside[0],
    };
  }

  async #change({ kind, leaving, newcomer }: Drawn, giveUp: AbortSignal): Promise<void> {
    const { faults, log } = this.#settings;
    const change = this.#changeOf({ kind, leaving, newcomer });
    if (change === undefined || !faults.hold(newcomer, leaving)) return;
    const target = [leaving?.name, newcomer?.name].filter((name) => name !== undefined).join(" by ");
    const end = log.begin({ kind, target });
    const generation = await this.#until(change, giveUp);
    if (leaving !== undefined) this.#members.delete(leaving);
    if (newcomer !== undefined) {
      this.#members.add(newcomer);
      if (generation !== undefined && !(await votesIn(newcomer, generation, giveUp))) faults.notReadmitted.push(newcomer.name);
    }
    faults.letGo(newcomer);
    end();
  }

  #changeOf({ leaving, newcomer }: Drawn): MemberChange | undefined {
    const add = newcomer?.url;
    const remove = leaving === undefined ? undefined : this.#urlOf(leaving);
    if (add !== undefined && remove !== undefined) return { replace: remove, by: add };
    if (add !== undefined) return { add };
    return remove === undefined ? undefined : { remove };
  }

  /** By the operator's own way to a founder; others by the address they came with. */
  #urlOf(node: RedisNode): string {
    const { way, nodes, founders } = this.#settings;
    const index = nodes.indexOf(node);
    return new URL((index < founders ? way.urls[index] : undefined) ?? node.url).host;
  }

  /** The generation that has it; undefined if that is not to be waited for any longer. */
  async #until(change: MemberChange, giveUp: AbortSignal): Promise<number | undefined> {
    const { way, founders, chance, maxTtlMs } = this.#settings;
    for (; !giveUp.aborted; await sleep(REST_MS)) {
      await using operator = createLocker({ nodes: way.urls.slice(0, founders), maxTtlMs, ttlMs: maxTtlMs, label: "operator" });
      const isLeft = chance.happens(0.5);
      try {
        await operator.ready();
        const changing = operator.fleet.reconfigure(change, { waitMs: TRY_MS });
        if (!isLeft) return (await changing).generation;
        changing.catch(goneAway);
        await sleep(chance.between(0, HALF_WAY_MS));
      } catch (error) {
        if ((error as Error).name !== "LockError") throw error;
      }
    }
    return undefined;
  }
}

// The operator has gone away in the middle, or others had begun another change.
function goneAway(): undefined {}
