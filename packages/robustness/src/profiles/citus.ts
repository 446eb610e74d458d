// `npm run faults -- --citus`: the whole system while the servers of its store, a Citus cluster,
// are killed, restarted and paused, one at a time.
import { once } from "node:events";
import { citusFaults, injectCitusFaults } from "../faults/citus.js";
import { type Command, REPORT_USAGE, type ReportFiles, reportFiles, seedOf, type Values, wholeNumber } from "../harness/command.js";
import { CitusStore } from "../servers/citus-store.js";
import { collectFenced } from "../servers/collect.js";
import { readmitted } from "../servers/node-state.js";
import { startSystem } from "../servers/system.js";
import { intruded } from "../traffic/intruder.js";
import { documentTimes, rows } from "../traffic/read-modify-write.js";
import { type FaultProfile, faultCommand } from "./fault-run.js";

const usage = `npm run faults -- --citus [options]  a Citus cluster whose servers break
  --rounds N         how often each fault comes (3)
  --short            each once: about a minute with everything
  --seed S           what to repeat (from the clock)
  --clients N        client processes (6)
  --json FILE        the report and the whole history as JSON
${REPORT_USAGE}
Needs PALISADE_TEST_CITUS or a Docker engine, as npm run citus does.`;

export interface CitusAsked extends ReportFiles {
  readonly seed: string;
  readonly isControl: false;
  readonly clients: number;
  readonly rounds: number;
}

const NODES = 3;
const RECOVERY_MS = 60_000;
/** Longer than any run: clients are stopped until its end. */
const PLANNED_MS = 3_600_000;

export function readCitusArguments(values: Values): CitusAsked {
  const isShort = values.has("short");
  if (isShort && values.text.rounds !== undefined)
    throw new RangeError("--short and --rounds are two answers to one question: give one of them.");
  return {
    seed: seedOf(values),
    isControl: false,
    clients: wholeNumber(values, "clients", { fallback: 6, least: 2, most: 64 }),
    rounds: wholeNumber(values, "rounds", { fallback: isShort ? 1 : 3, least: 1, most: 1_000 }),
    ...reportFiles(values),
  };
}

export const citusCommand: Command<CitusAsked> = faultCommand<CitusAsked>({
  usage,
  texts: ["rounds", "seed", "clients"],
  flags: ["short"],
  read: readCitusArguments,
  profile: citusProfile,
  repeat: ({ seed, clients, rounds }) => `npm run faults -- --citus --rounds ${rounds} --clients ${clients} --seed ${seed}`,
  isFoundWanting: () => false,
  expected: "be found wanting",
});

function citusProfile({ seed, clients, rounds }: CitusAsked): FaultProfile {
  let store: CitusStore | undefined;
  const done = new AbortController();
  return {
    seed,
    plan: {
      ...{ durationMs: PLANNED_MS, nodes: NODES, gateways: 0, clients },
      weights: { "client stopped": 1 },
      ...{ paceMs: 3_000, calm: { probability: 0, ms: 0 }, lastsMs: { least: 20, most: 500 } },
      ...{ slowMs: { least: 40, most: 40 }, beyondQuorum: 0 },
    },
    ...{ ttlMs: documentTimes.ttlMs, maxTtlMs: documentTimes.maxTtlMs, recoveryMs: RECOVERY_MS, limit: 1 },
    ...{ ambushRestMs: undefined, killKeepsMemory: true, readmitted, accounted: citusFaults },
    start: async (closers, folder) => {
      const started = closers.use(await CitusStore.start());
      store = started;
      const env = { PALISADE_DURABILITY: "local" };
      const system = await startSystem(
        { seed, clients, isFenced: true, servers: NODES, listed: NODES, folder, store: started, env },
        closers,
      );
      return { ...system, store: undefined, servers: `${system.servers}; ${started.description}; ${system.gateways.length} gateways` };
    },
    besides: async ({ gateways }, log, signals) => {
      if (store !== undefined) await injectCitusFaults({ cluster: store.cluster, gateways, log, seed, rounds }, signals);
      done.abort();
    },
    traffic: async (_, ended) => void (await Promise.race([once(done.signal, "abort"), ended])),
    collect: async () => (store === undefined ? {} : await collectFenced(store, rows, intruded)),
  };
}
