// Worlds in which one rule of the protocol is switched off. Each must be found out: checkers that
// miss these would miss a defect of the lock as well. A rule that lives in a script is switched off
// by editing its Lua.
import { majority } from "#lock/quorum/tally.js";
import type { ScriptName } from "../server/sim-server.js";
import { answersAsBefore, votesAtOnce } from "./premature-admission.js";
import { allRules, type Rules } from "./rules.js";

interface Edit {
  readonly find: string;
  readonly replace: string;
}

/** Each text must occur exactly once in the script. */
export function edited(script: ScriptName, ...edits: readonly Edit[]): Rules {
  const edit = (name: ScriptName | undefined, text: string): string => (name === script ? edits.reduce(replacedOnce, text) : text);
  return { ...allRules, edit };
}

function replacedOnce(text: string, { find, replace }: Edit): string {
  if (text.split(find).length !== 2) throw new Error(`a control looks for this in a script, once: ${find}`);
  return text.replace(find, () => replace);
}

const SHORT_RELEASE = "if #KEYS == 1 and #ARGV == 1 and string.byte(ARGV[1], 23) == 124 then\n";

export const controls: Readonly<Record<string, Rules>> = {
  "no seal round": edited("seal", {
    find: "  local mine, token",
    replace: "  if true then return 1 end\n  local mine, token",
  }),
  "seal without ownership": edited(
    "seal",
    {
      find: "if not value or sub(value, 1, #mine) ~= mine or storedAt(KEYS[key + 1]) > token then",
      replace: "if false then",
    },
    {
      find: "store(KEYS[key + 1], token)",
      replace: "store(KEYS[key + 1], math.max(token, storedAt(KEYS[key + 1])))",
    },
  ),
  "no quarantine": { ...allRules, onNewLife: votesAtOnce },
  "readmission without waiting": edited("openAdmission", {
    find: "string.format('%.0f', math.max(0, now - openedAt))",
    replace: "'99999999'",
  }),
  "readmission without floors": edited("readFloor", { find: "return node[2]", replace: "return '1'" }),
  "founders that look once": { ...allRules, answer: answersAsBefore() },
  "tickets ignored": edited("admit", {
    find: "redis.call('HGET', KEYS[1], 'ticket') ~= ARGV[2]",
    replace: "admission(redis.call('HGET', KEYS[1], 'admitted')) == runId",
  }),
  "epochs that nobody moves": edited("readFloor", {
    find: "redis.call('HSET', KEYS[1], 'admitted', admittedAs(counterFloor, ARGV[1]))",
    replace: "",
  }),
  "old counters believed": edited("admit", {
    find: "admittedAs(floor, ARGV[4])",
    replace: "admittedAs(0, ARGV[4])",
  }),
  "heal over another's key": edited(
    "heal",
    { find: "if holder and sub(holder, 1, #mine) ~= mine then", replace: "if false then" },
    { find: "call('GET', KEYS[key]) or value", replace: "value" },
  ),
  "validity from the last reply": { ...allRules, countsFrom: "last reply" },
  "no allowance for drift": { ...allRules, policy: (policy) => ({ ...policy, driftFactor: -0.05 }) },
  "less than a majority": {
    ...allRules,
    policy: (policy) => ({ ...policy, quorum: majority(policy.size) - 1 }),
  },
  "release whoever holds it": edited("release", {
    find: SHORT_RELEASE,
    replace: "if #KEYS == 1 and #ARGV == 1 then\n  call('DEL', KEYS[1])\n  if true then return 1 end\n",
  }),
  "release nothing": edited("release", {
    find: SHORT_RELEASE,
    replace: "if #KEYS == 1 and #ARGV == 1 then\n  if true then return 1 end\n",
  }),
};
