// The rules of the protocol in a world: all hold, except in a control, which switches one off from
// outside, in the text of a script, an answer, the policy or the callers. The lock's own code is
// the same.

import { addressOf } from "#lock/options/node-source.js";
import type { Policy } from "#lock/options/policy.js";
import { majority } from "#lock/quorum.js";
import { generationOf, paddedRunId, readAdmissionRecord, writeRoster } from "#lock/redis/record.js";
import type { Memory, Reply } from "../commands.js";
import type { Executed, ScriptName, SimServer } from "../sim-server.js";

/** How one process is configured. */
export interface Configured {
  readonly nodes: readonly string[];
  readonly ttlMs: number;
}

export interface Rules {
  readonly policy: (policy: Policy) => Policy;
  /** From when on a caller counts its lease. */
  readonly countsFrom: "first byte" | "last reply";
  /**
   * `two`: processes that begin later have another server in the place of the last node in their
   * lists, as in a rolling replacement, or by a typing error.
   */
  readonly lists?: "two";
  /** Changes the text of a script. */
  readonly edit?: (name: ScriptName | undefined, text: string) => string;
  /** Changes an answer of a server. */
  readonly answer?: (executed: Executed) => Reply;
  /** Changes an answer before the process, which is configured so, reads it. */
  readonly hears?: (reply: unknown, process: Configured) => unknown;
  /** What is done to a server that begins a new life, or a new memory; `before` is what it knew. */
  readonly onNewLife?: (server: SimServer, before: Memory) => void;
}

export const allRules: Rules = { policy: (policy) => policy, countsFrom: "first byte" };

// Worlds in which one rule of the protocol is switched off. Each must be found out: checkers that
// miss these would miss a defect of the lock as well. A rule that lives in a script is switched
// off by editing its Lua.

const NODE_KEY = "{sim}:node";

/** Puts the old record into the new memory: the node votes as if it had forgotten nothing. */
function votesAtOnce(server: SimServer, before: Memory): void {
  const nowMs = server.wallMs();
  const known = before.hash(NODE_KEY, nowMs);
  const admission = readAdmissionRecord(known?.get("admitted") ?? "");
  if (known === undefined || admission === undefined) return;
  const record = server.memory.madeHash(NODE_KEY, nowMs);
  const floor = record.get("floor") ?? "0";
  for (const [field, value] of known) record.set(field, value);
  record.set("admitted", `+${paddedRunId(server.runId).slice(0, -1)}${"0".repeat(15)}${admission.epoch}`).set("floor", floor);
}

/** A founder's second look at a node repeats the answer of its first. */
function answersAsBefore(): (executed: Executed) => Reply {
  const firstLooks = new WeakMap<Memory, Map<string, readonly Reply[]>>();
  return ({ name, server, args, reply }) => {
    if (name !== "openAdmission" || !Array.isArray(reply)) return reply;
    // The nonce that it offers begins with its name.
    const [locker = ""] = /^p\w+/.exec(args[0] ?? "") ?? [];
    const looks = firstLooks.get(server.memory) ?? new Map<string, readonly Reply[]>();
    firstLooks.set(server.memory, looks);
    const before = looks.get(locker);
    looks.delete(locker);
    if (before !== undefined && reply[3] !== before[3]) return [...before.slice(0, -1), args[5] ?? ""];
    if (reply[0] === "0") looks.set(locker, reply);
    return reply;
  };
}

/** Behind how the node stands, the run id and the counter floor: in which generation a node votes. */
const GENERATION = /(?<=^[+-].{39}\d{15})[^:]*(?=:)/;
/** See status.lua. */
const [STATUS_WORDS, MEMBERS] = [14, 11];

/** The nodes of its own list are the members for a process, and every vote is one of their generation. */
function countsItsOwnList(reply: unknown, { nodes, ttlMs }: Configured): unknown {
  if (!Array.isArray(reply)) return reply;
  const members = nodes.map((url) => ({ id: addressOf(url), address: addressOf(url), since: 1 }));
  const roster = { generation: 1, members, maxTtlMs: ttlMs, formerMaxTtlMs: ttlMs };
  const told = reply.map((word) => (typeof word === "string" ? word.replace(GENERATION, generationOf(roster)) : word));
  if (told.length === STATUS_WORDS && told[MEMBERS] !== "") told[MEMBERS] = writeRoster(roster);
  return told;
}

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

const SHORT_RELEASE = "if #KEYS == 1 and #ARGV == 1 and #ARGV[1] == 24 and string.byte(ARGV[1], 23) == 124 then\n";

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
  "votes of any generation": {
    ...edited("readFloor", { find: " or generation ~= ARGV[2]", replace: "" }),
    lists: "two",
    hears: countsItsOwnList,
  },
  "no quarantine": { ...allRules, onNewLife: votesAtOnce },
  "readmission without waiting": edited("openAdmission", {
    find: "string.format('%.0f', math.max(0, now - openedAt))",
    replace: "'99999999'",
  }),
  "readmission without floors": edited("readFloor", { find: "return record[2]", replace: "return '1'" }),
  "founders that look once": { ...allRules, answer: answersAsBefore() },
  "nonces ignored": edited("admit", {
    find: "record[1] ~= ARGV[2]",
    replace: "redis.call('HGET', KEYS[1], 'admitted') and string.sub(redis.call('HGET', KEYS[1], 'admitted'), 1, 40) == head('+')",
  }),
  "epochs that nobody moves": edited("readFloor", {
    find: "redis.call('HSET', KEYS[1], 'admitted', admittedAs(standing, counterFloor, generation, ARGV[1]))",
    replace: "",
  }),
  "old counters believed": edited("admit", {
    find: "admittedAs('+', floor, ARGV[8], ARGV[4])",
    replace: "admittedAs('+', 0, ARGV[8], ARGV[4])",
  }),
  "heal over another's key": edited("heal", { find: "if holder and sub(holder, 1, #mine) ~= mine then", replace: "if false then" }),
  "validity from the last reply": { ...allRules, countsFrom: "last reply" },
  "no allowance for drift": { ...allRules, policy: (policy) => ({ ...policy, driftFactor: -0.05 }) },
  "less than a majority": {
    ...allRules,
    policy: (policy) => ({ ...policy, quorum: majority(policy.size) - 1 }),
  },
  "release whoever holds it": edited("release", { find: SHORT_RELEASE, replace: `${SHORT_RELEASE}  call('DEL', KEYS[1])\n` }),
  "claims over a holder": edited("claim", {
    find: "elseif holder ~= value then",
    replace: "elseif false then",
  }),
  "reservations without an end": edited("release", { find: ", 'PX', format('%.0f', forMs))", replace: ")" }),
  "tickets that stay": edited(
    "release",
    { find: "call('DEL', ticketName(ticket))", replace: "" },
    { find: "call('ZREM', queueOf(KEYS[key]), ticket)", replace: "" },
  ),
  "parts that nobody keeps": edited("release", { find: "elseif not isFirst then", replace: "elseif true then" }),
  "refused without a ticket": edited("claim", { find: "call('ZADD', queue, since, ticket)", replace: "" }),
  "release nothing": edited("release", {
    find: SHORT_RELEASE,
    replace: "if #KEYS == 1 and #ARGV == 1 then\n  if true then return 1 end\n",
  }),
};
