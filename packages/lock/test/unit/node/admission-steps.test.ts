// An admission during which nodes fall silent: what was seen when it was planned is not there any more when it is carried out.
import { expect, test } from "vitest";
import { admitAll } from "../../../src/node/admission-steps.js";
import { keysOf } from "../../../src/node/keys.js";
import { admitScript } from "../../../src/node/lua.generated.js";
import type { Mark, NodeStatus, ScriptCall } from "../../../src/node/node-record.js";
import type { RedisNode } from "../../../src/node/redis-node.js";
import { ManualClock } from "../manual-clock.js";

/** The third of three nodes is to be rebuilt; the others answer a visit with these floors, or not at all. Tells with which floors it was admitted. */
async function rebuildingFrom(...floors: readonly (number | undefined)[]): Promise<{ admitted: boolean; floors: number[] }> {
  const given: number[] = [];
  const nodes = ["n1", "n2", "n3"].map((name, i) => {
    const run = async ({ source, args }: ScriptCall<unknown>): Promise<number | undefined> => {
      if (source !== admitScript) return floors[i];
      given.push(Number(args[2]));
      return Number(args[2]);
    };
    return { name, connection: { isUp: true, run }, status: undefined } as unknown as RedisNode;
  });
  const mark: Mark = { runId: "r", id: "i", ticket: "t", lostForMs: 0, proposedFloor: 1, proposedMaxTtlMs: 1, claimed: true };
  const node = { name: "n3", status: {} as NodeStatus, mark };
  const clock = new ManualClock();
  const settings = { nodes, keys: keysOf("n"), clock, expected: { size: 3, maxTtlMs: 1 }, claim: "c", onEvent: () => {} };
  return { admitted: await admitAll(settings, [{ kind: "rebuilt", node, needed: 2, waitMs: 0 }]), floors: given };
}

test("T2 a node is rebuilt with the highest floor of enough others, and with none if one of them has fallen silent since it was planned", async () => {
  expect(await rebuildingFrom(10, 20)).toEqual({ admitted: true, floors: [20] });
  expect(await rebuildingFrom(10, undefined)).toEqual({ admitted: false, floors: [] });
});
