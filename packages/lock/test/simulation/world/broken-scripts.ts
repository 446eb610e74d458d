// Scripts that leave out one condition each. Only for controls.
import { confirmed, extended, type Reply, sealed } from "../server/reply.js";
import type { ScriptCall } from "../server/script-call.js";
import { store, storedAt } from "../server/scripts/counter.js";
import { extend } from "../server/scripts/extend.js";
import { heal } from "../server/scripts/heal.js";
import { admit, visit } from "../server/scripts/node-scripts.js";
import { admissionIn, admittedAs } from "../server/scripts/record.js";
import { release } from "../server/scripts/release.js";
import { argumentAt, keyAt, type RequestScript, runRequests } from "../server/scripts/request-script.js";
import { seal } from "../server/scripts/seal.js";

const instead =
  (script: RequestScript, request: RequestScript["request"]) =>
  (call: ScriptCall): Reply =>
    runRequests({ ...script, request }, call);

export const sealsNothing = instead(seal, () => sealed);

/** Whoever owns the key. */
export const sealsAnyway = instead(seal, (call, record, { first, last, at }) => {
  const token = Number(argumentAt(call, at + 1));
  for (let key = first; key < last; key += 2) {
    const counter = keyAt(call, key + 1);
    store(call, record, { key: counter, token: Math.max(token, storedAt(call, record, counter)) });
  }
  return sealed;
});

export const releasesAnybody = (call: ScriptCall): Reply => {
  if (call.keys.length !== 1 || call.args.length !== 1) return release(call);
  call.memory.delete(keyAt(call, 0));
  return confirmed(1);
};

/** And says that it did. */
export const releasesNothing = (call: ScriptCall): Reply =>
  call.keys.length === 1 && call.args.length === 1 ? confirmed(1) : release(call);

export const extendsAnything = instead(extend, (call, record, request) => {
  const { memory, nowMs } = call;
  const { first, last, at } = request;
  for (let key = first; key < last; key += 2) {
    if (memory.get(keyAt(call, key), nowMs) === undefined)
      memory.set(keyAt(call, key), `${argumentAt(call, at)}revived`, nowMs + Number(argumentAt(call, 0)));
  }
  return extend.request(call, record, request);
});

export const healsOver = instead(heal, (call, _, { first, last, at }) => {
  for (let key = first; key < last; key += 2)
    call.memory.set(keyAt(call, key), argumentAt(call, at), call.nowMs + Number(argumentAt(call, 0)));
  return extended;
});

/** Reads the floor, and leaves the epoch as it is. */
export const visitsUnnoticed = (call: ScriptCall): Reply => {
  const key = call.keys[0] ?? "";
  const admitted = call.memory.hash(key, call.nowMs)?.get("admitted");
  const floor = visit(call);
  if (admitted !== undefined && floor !== null) call.memory.put(key, { admitted }, call.nowMs);
  return floor;
};

/** Of a memory that was rebuilt, whatever it has is taken for the latest. */
export const believesOldCounters = (call: ScriptCall): Reply => {
  const reply = admit(call);
  const key = call.keys[0] ?? "";
  const admission = admissionIn(call.memory.hash(key, call.nowMs)?.get("admitted"));
  if (admission !== undefined) call.memory.put(key, { admitted: admittedAs(call.host.runId, 0, admission.epoch) }, call.nowMs);
  return reply;
};
