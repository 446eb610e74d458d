// What the runs over a store of several servers have in common: the store has faults of its own,
// each so many times, while clients are stopped now and then. The run is over with the last fault.
import { once } from "node:events";
import { type ReportFiles, reportFiles, seedOf, shortOr, type Values, wholeNumber } from "../harness/command.js";
import { readmitted } from "../servers/node-state.js";
import { documentTimes } from "../traffic/read-modify-write.js";
import type { FaultProfile } from "./fault-run.js";

export interface StoreAsked extends ReportFiles {
  readonly seed: string;
  readonly isShort: boolean;
  readonly isControl: boolean;
  readonly clients: number;
  readonly rounds: number;
}

/** Of the lock's fleet. */
export const NODES = 3;
const RECOVERY_MS = 60_000;
/** Longer than any run: clients are stopped until its end. */
const PLANNED_MS = 3_600_000;

export function readStoreArguments(values: Values): StoreAsked {
  const isShort = shortOr(values, "rounds");
  return {
    seed: seedOf(values),
    isShort,
    isControl: values.has("control"),
    clients: wholeNumber(values, "clients", { fallback: 6, least: 2, most: 64 }),
    rounds: wholeNumber(values, "rounds", { fallback: isShort ? 1 : 3, least: 1, most: 1_000 }),
    ...reportFiles(values),
  };
}

type OfStore = Required<Pick<FaultProfile, "accounted" | "start" | "besides" | "collect">>;

/** `store`: its start, its faults and what it has stored. */
export function storeProfile({ seed, clients }: StoreAsked, store: OfStore): FaultProfile {
  const done = new AbortController();
  return {
    ...store,
    seed,
    plan: {
      durationMs: PLANNED_MS,
      nodes: NODES,
      gateways: 0,
      clients,
      weights: { "client stopped": 1 },
      paceMs: 3_000,
      calm: { probability: 0, ms: 0 },
      lastsMs: { least: 20, most: 500 },
      slowMs: { least: 40, most: 40 },
      beyondQuorum: 0,
    },
    ttlMs: documentTimes.ttlMs,
    maxTtlMs: documentTimes.maxTtlMs,
    recoveryMs: RECOVERY_MS,
    limit: 1,
    ambushRestMs: undefined,
    killKeepsMemory: true,
    readmitted,
    besides: async (...of) => {
      await store.besides(...of);
      done.abort();
    },
    traffic: async (_, ended) => void (await Promise.race([once(done.signal, "abort"), ended])),
  };
}
