// What a release says of the ticket that won its lease.
import { expect, test } from "vitest";
import { releaseEverywhere } from "../../../src/lease/release.js";
import { contextOf, ScriptedNode } from "../scripted-node.js";

const lease = { resources: ["r"], owner: "o", token: 7, ticket: "" };
const nodes = (): ScriptedNode[] => ["n1", "n2", "n3"].map((name) => new ScriptedNode(name, { grant: (node) => node.granted(7) }));

test("W1 a release takes the ticket of its lease along to every node", async () => {
  const asked = nodes();
  await releaseEverywhere({ ...contextOf(asked), isWanted: () => false }, lease);
  expect(asked.flatMap(({ tickets }) => tickets)).toEqual(["", "", ""]);
});

test("W1 a release leaves the ticket to another caller of its process that waits for the same", async () => {
  const asked = nodes();
  await releaseEverywhere({ ...contextOf(asked), isWanted: ([resource]) => resource === "r" }, lease);
  expect(asked.flatMap(({ tickets }) => tickets)).toEqual([undefined, undefined, undefined]);
});
