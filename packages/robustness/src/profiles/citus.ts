// `npm run faults -- --citus`: the whole system while the servers of its store, a Citus cluster,
// are killed, restarted and paused, one at a time.
import { citusFaults, injectCitusFaults } from "../faults/citus.js";
import { type Command, REPORT_USAGE } from "../harness/command.js";
import { CitusStore } from "../servers/citus-store.js";
import { collectFenced } from "../servers/collect.js";
import { startSystem } from "../servers/system.js";
import { intruded } from "../traffic/intruder.js";
import { rows } from "../traffic/read-modify-write.js";
import { faultCommand } from "./fault-command.js";
import type { FaultProfile } from "./fault-run.js";
import { NODES, readStoreArguments, type StoreAsked, storeProfile } from "./store-faults.js";

const usage = `npm run faults -- --citus [options]  a Citus cluster whose servers break
  --rounds N         how often each fault comes (3)
  --short            each once: about a minute with everything
  --seed S           what to repeat (from the clock)
  --clients N        client processes (6)
  --json FILE        the report and the whole history as JSON
${REPORT_USAGE}
Needs PALISADE_TEST_CITUS or a Docker engine, as npm run citus does.`;

export const citusCommand: Command<StoreAsked> = faultCommand<StoreAsked>({
  usage,
  texts: ["rounds", "seed", "clients"],
  flags: ["short"],
  read: readStoreArguments,
  profile: citusProfile,
  repeat: ({ seed, clients, rounds }) => `npm run faults -- --citus --rounds ${rounds} --clients ${clients} --seed ${seed}`,
  isFoundWanting: () => false,
  expected: "be found wanting",
});

function citusProfile(asked: StoreAsked): FaultProfile {
  const { seed, clients, rounds } = asked;
  let store: CitusStore | undefined;
  return storeProfile(asked, {
    accounted: citusFaults,
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
    },
    collect: async () => (store === undefined ? {} : await collectFenced(store, rows, intruded)),
  });
}
