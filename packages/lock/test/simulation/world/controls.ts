// Worlds in which one rule of the protocol is switched off. Each must be caught: a checker that finds nothing in these would find nothing in the lock either. Some rules matter
// only when certain faults come together; their worlds have more of these.
import { majority } from "#lock/quorum/tally.js";
import { faithful, type Native, type Natives } from "../server/known-scripts.js";
import { releasesAnybody, releasesNothing, sealsAnyway, sealsBelow, sealsNothing } from "./broken-scripts.js";
import { forgetsBase, readmitsAtOnce, tellsNoFloor, votesAtOnce } from "./credulous.js";
import { allRules, type Rules } from "./rules.js";
import type { FaultKind, Scenario } from "./scenario.js";

export interface Control {
  readonly rules: Rules;
  /** Of the world that a seed makes, the world that is played. */
  ground(scenario: Scenario): Scenario;
}

const asItIs = (scenario: Scenario): Scenario => scenario;

function control(rules: Partial<Rules>, ground: Control["ground"] = asItIs): Control {
  return { rules: { ...allRules, ...rules }, ground };
}

function script(natives: Partial<Record<keyof Natives, Native>>, ground: Control["ground"] = asItIs): Control {
  return control({ natives: { ...faithful, ...natives } }, ground);
}

/** Memories are lost one after the other, each readmitted soon. */
function forgetting(kinds: readonly FaultKind[]): Control["ground"] {
  return (scenario) => ({
    ...scenario,
    nodes: 3,
    ttlMs: 100,
    nodeTimeoutMs: 20,
    appendfsync: "no",
    resources: 5,
    faults: scenario.faults.map((fault, i) => ({
      ...fault,
      kind: kinds[i % kinds.length] ?? fault.kind,
      lastsMs: 1 + (fault.lastsMs % 40),
    })),
  });
}

/** Answers are late, and keys run out under those who asked. */
const late: Control["ground"] = (scenario) => ({
  ...scenario,
  ttlMs: 80,
  nodeTimeoutMs: 60,
  resources: 2,
  faults: scenario.faults.map((fault, i) => ({
    ...fault,
    kind: (["slow", "stop node", "hold replies", "second time"] as const)[i % 4] ?? "slow",
  })),
});

export const controls: Readonly<Record<string, Control>> = {
  "no seal round": script({ seal: sealsNothing }),
  "seal without ownership": script({ seal: sealsAnyway }, late),
  "seal below a higher counter": script({ seal: sealsBelow }, late),
  "no quarantine": control({ onNewLife: votesAtOnce }),
  "readmission without waiting": script({ mark: readmitsAtOnce }),
  "readmission without floors": script({ visit: tellsNoFloor }, forgetting(["wipe node"])),
  "old counters are believed": script({ admit: forgetsBase }, forgetting(["lose tail"])),
  "validity from the last reply": control({ countsFrom: "last reply" }, late),
  "no allowance for drift": control({ policy: (policy) => ({ ...policy, driftFactor: -0.05 }) }),
  "less than a majority": control({ policy: (policy) => ({ ...policy, quorum: majority(policy.size) - 1 }) }),
  "release whoever holds it": script({ release: releasesAnybody }),
  "release nothing": script({ release: releasesNothing }),
};
