// A renewal while the members change: who is asked, and by whose number it is counted.
import { expect, test } from "vitest";
import { renew } from "../../../src/lease/renew.js";
import { ScriptedNode, stateOf } from "../scripted-node.js";

test("L2 a lease is planted on the members that are asked to renew it, also when they change meanwhile", async () => {
  const grant = (node: ScriptedNode) => node.granted(7);
  const [n1, n2, n4] = ["n1", "n2", "n4"].map((name) => new ScriptedNode(name, { grant })) as [ScriptedNode, ScriptedNode, ScriptedNode];
  const n3 = new ScriptedNode("n3", {
    grant,
    heal: () => {
      state.nodes = [n1, n2, n4];
      return { kind: "extended", node: "n3" };
    },
  });
  const state = stateOf([n1, n2, n3]);
  const { verdict } = await renew(state, { resources: ["r"], owner: "o", token: 7, ttlMs: 900, plantMs: 500, isWanted: () => true });
  expect(verdict).toBe("renewed");
  expect([n1, n3, n4].map(({ asked }) => asked)).toEqual([["heal 500", "heal 500", "extend"], ["heal 500"], ["heal 500", "extend"]]);
});
