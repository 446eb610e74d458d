// Every script of the admission and of a change of members, each called once; by its file.

import { keysOf } from "../../../src/protocol/verbs.js";
import type { ScriptCall } from "../../../src/redis/calls.js";
import { accept, admit, enter, openAdmission, promise, readFloor, readmit, retire, status } from "../../../src/redis/record.js";

const roster = { generation: 1, members: [], maxTtlMs: 1, formerMaxTtlMs: 1 };
const admitted = {
  runId: "r",
  nonce: "t",
  floor: 1,
  epoch: "e",
  id: "i",
  fleet: "f",
  size: 1,
  maxTtlMs: 1,
  durable: "durable" as const,
  roster,
  founding: "",
};

export const keys = keysOf("ns", "inbox");

export const admissionCalls: Readonly<Record<string, ScriptCall<unknown>>> = {
  status: status,
  "open-admission": openAdmission({ nonce: "t", id: "i", wallMs: 1, maxTtlMs: 1, sinceGeneration: 0, founding: "" }),
  "read-floor": readFloor("e", "g"),
  admit: admit(admitted),
  readmit: readmit(admitted),
  promise: promise("", 1),
  accept: accept({ noted: "", ballot: 1, roster, openForMs: 0, epoch: "e" }),
  enter: enter({ roster, floor: 1, epoch: "e", sinceGeneration: 0 }),
  retire: retire("f", roster),
};
