// Worlds in which one rule of the protocol is switched off. Each must be caught: a checker that finds nothing in these would find nothing in the lock either.
import { majority } from "#lock/quorum/tally.js";
import { faithful, type Native, type Natives } from "../server/known-scripts.js";
import {
  believesOldCounters,
  healsOver,
  releasesAnybody,
  releasesNothing,
  sealsAnyway,
  sealsNothing,
  visitsUnnoticed,
} from "./broken-scripts.js";
import { admitsAnyMemory, answersAsBefore, readmitsAtOnce, tellsNoFloor, votesAtOnce } from "./credulous.js";
import { allRules, type Rules } from "./rules.js";

function script(natives: Partial<Record<keyof Natives, Native>>): Rules {
  return { ...allRules, natives: { ...faithful, ...natives } };
}

export const controls: Readonly<Record<string, Rules>> = {
  "no seal round": script({ seal: sealsNothing }),
  "seal without ownership": script({ seal: sealsAnyway }),
  "no quarantine": { ...allRules, onNewLife: votesAtOnce },
  "readmission without waiting": script({ mark: readmitsAtOnce }),
  "readmission without floors": script({ visit: tellsNoFloor }),
  "founders that look once": script({ mark: answersAsBefore }),
  "tickets ignored": script({ admit: admitsAnyMemory }),
  "epochs that nobody moves": script({ visit: visitsUnnoticed }),
  "old counters believed": script({ admit: believesOldCounters }),
  "heal over another's key": script({ heal: healsOver }),
  "validity from the last reply": { ...allRules, countsFrom: "last reply" },
  "no allowance for drift": { ...allRules, policy: (policy) => ({ ...policy, driftFactor: -0.05 }) },
  "less than a majority": { ...allRules, policy: (policy) => ({ ...policy, quorum: majority(policy.size) - 1 }) },
  "release whoever holds it": script({ release: releasesAnybody }),
  "release nothing": script({ release: releasesNothing }),
};
