// One of two fleets is taken away and added again, over and over, while everything else breaks: the
// one to which the watched resource belongs under both, so that its home changes each time. Half of
// the changes are left half-way by an operator who goes away; the next one finishes it, or takes it
// back.
import { setTimeout as sleep } from "node:timers/promises";
import { createLocker, type Locker, nodesOrFleets } from "@palisade/lock";
import { waited } from "../history/records.js";
import type { Chance } from "../traffic/chance.js";
import type { FaultLog } from "./fault-log.js";

interface FleetChangesSettings {
  /** The operator's way to the nodes, each with the name of its fleet. */
  readonly urls: readonly string[];
  /** Whose home is to change. */
  readonly resource: string;
  readonly log: FaultLog;
  readonly chance: Chance;
  readonly maxTtlMs: number;
}

const TRY_MS = 5_000;
const REST_MS = 400;

export class FleetChanges {
  readonly #settings: FleetChangesSettings;

  constructor(settings: FleetChangesSettings) {
    this.#settings = settings;
  }

  /** One change after the other until the signal comes; the last one is finished. */
  async goOn(over: AbortSignal, giveUp: AbortSignal): Promise<void> {
    const fleet = await this.#home(giveUp);
    if (fleet === undefined) return;
    for (let isThere = true; !over.aborted; ) {
      isThere = await this.#change(fleet, !isThere, giveUp);
      await waited(REST_MS, over);
    }
  }

  async #home(giveUp: AbortSignal): Promise<string | undefined> {
    return this.#until(giveUp, async (operator) => (await operator.inspect(this.#settings.resource)).fleet);
  }

  /** Whether the fleet is there when it is done. */
  async #change(fleet: string, isWanted: boolean, giveUp: AbortSignal): Promise<boolean> {
    const { log, chance, maxTtlMs } = this.#settings;
    let wish = isWanted;
    const end = log.begin({ kind: wish ? "fleet added" : "fleet removed", place: "nodes", target: fleet });
    const done = await this.#until(giveUp, async (operator) => {
      const changing = operator.changeFleets(wish ? { add: fleet } : { remove: fleet }, { waitMs: TRY_MS });
      if (chance.happens(0.5)) {
        await changing;
        return true;
      }
      changing.catch(goneAway);
      await sleep(chance.between(0, maxTtlMs * 1.5));
      if (chance.happens(0.3)) wish = !wish;
      return undefined;
    });
    end();
    return done === undefined ? !wish : wish;
  }

  /** Each time another operator, until there is an answer; undefined after the signal. */
  async #until<Answer>(giveUp: AbortSignal, ask: (operator: Locker) => Promise<Answer | undefined>): Promise<Answer | undefined> {
    const { urls, maxTtlMs } = this.#settings;
    for (; !giveUp.aborted; await sleep(REST_MS)) {
      await using operator = createLocker({ ...nodesOrFleets(urls), maxTtlMs, ttlMs: maxTtlMs, label: "operator" });
      try {
        const answer = await ask(operator);
        if (answer !== undefined) return answer;
      } catch (error) {
        // Too few nodes answered; or another change had begun, which the next one finishes.
        if ((error as Error).name !== "LockError" && !(error instanceof RangeError)) throw error;
      }
    }
    return undefined;
  }
}

// The operator has gone away in the middle.
function goneAway(): undefined {}
