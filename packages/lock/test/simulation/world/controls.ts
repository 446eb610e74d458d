// Worlds in which one rule of the protocol is switched off. Each must be caught: a checker that finds nothing in these would find nothing in the lock either.
import { majority } from "#lock/quorum/tally.js";
import { faithful, type Native, type Natives } from "../server/known-scripts.js";
import * as broken from "./broken-scripts.js";
import { forgetsBase, readmitsAtOnce, tellsNoFloor, votesAtOnce } from "./credulous.js";
import { allRules, type Rules } from "./rules.js";

const withNative = (natives: Partial<Record<keyof Natives, Native>>): Rules => ({ ...allRules, natives: { ...faithful, ...natives } });

export const controls: Readonly<Record<string, Rules>> = {
  "no seal round": withNative({ seal: broken.sealsNothing }),
  "seal without ownership": withNative({ seal: broken.sealsAnyway }),
  "seal below a higher counter": withNative({ seal: broken.sealsBelow }),
  "no quarantine": { ...allRules, onNewLife: votesAtOnce },
  "readmission without waiting": withNative({ mark: readmitsAtOnce }),
  "readmission without floors": withNative({ visit: tellsNoFloor }),
  "no epochs": withNative({ visit: broken.visitsUnnoticed }),
  "old counters are believed": withNative({ admit: forgetsBase }),
  "validity from the last reply": { ...allRules, countsFrom: "last reply" },
  "no allowance for drift": { ...allRules, policy: (policy) => ({ ...policy, driftFactor: -0.05 }) },
  "less than a majority": { ...allRules, policy: (policy) => ({ ...policy, quorum: majority(policy.size) - 1 }) },
  "release whoever holds it": withNative({ release: broken.releasesAnybody }),
  "renewal that revives": withNative({ extend: broken.extendsAnything }),
  "heal over another's key": withNative({ heal: broken.healsOver }),
};
