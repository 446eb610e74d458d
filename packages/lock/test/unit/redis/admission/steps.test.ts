// An admission during which nodes fall silent: what was seen when it was planned is not there any
// more when it is carried out.
import { expect, test } from "vitest";
import { keysOf } from "../../../../src/protocol/verbs.js";
import { admitAll, foundFleet } from "../../../../src/redis/admission/steps.js";
import type { ScriptCall } from "../../../../src/redis/calls.js";
import type { RedisFleet } from "../../../../src/redis/fleet.js";
import { scripts } from "../../../../src/redis/lua.generated.js";
import type { RedisNode } from "../../../../src/redis/node.js";
import type { NodeStatus, OpenAdmission } from "../../../../src/redis/record.js";
import { ManualClock } from "../../scripted-node.js";

function fleetOf(nodes: readonly RedisNode[]): RedisFleet {
  return {
    members: nodes,
    configured: nodes,
    all: nodes,
    generation: "",
    roster: { generation: 1, members: [], maxTtlMs: 1, formerMaxTtlMs: 1 },
    id: "f",
    memberAt: () => undefined,
    keys: keysOf("n"),
    clock: new ManualClock(),
    askedMaxTtlMs: 1,
    onEvent: () => {},
  } as Partial<RedisFleet> as RedisFleet;
}

/**
 * The third of three nodes is to be rebuilt; the others answer a visit with these floors, or not at
 * all. Tells with which floors it was admitted.
 */
async function rebuildingFrom(...floors: readonly (number | undefined)[]): Promise<{ admitted: boolean; floors: number[] }> {
  const given: number[] = [];
  const nodes = ["n1", "n2", "n3"].map((name, i) => {
    const run = async ({ source, args }: ScriptCall<unknown>): Promise<unknown> => {
      if (source !== scripts.admit) return floors[i];
      given.push(Number(args[2]));
      return Number(args[2]);
    };
    return { name, connection: { isUp: true, run }, status: undefined } as unknown as RedisNode;
  });
  const lost = { lostForMs: 0, proposedFloor: 1, proposedMaxTtlMs: 1 };
  const opened: OpenAdmission = { runId: "r", id: "i", nonce: "t", ...lost, founding: "" };
  const node = { name: "n3", status: {} as NodeStatus, opened };
  return {
    admitted: await admitAll(fleetOf(nodes), [{ kind: "rebuilt", node, needed: 2, waitMs: 0 }]),
    floors: given,
  };
}

test("T2 a node is rebuilt with the highest floor of enough others, and with none if one of them has fallen silent since it was planned", async () => {
  expect(await rebuildingFrom(10, 20)).toEqual({ admitted: true, floors: [20] });
  expect(await rebuildingFrom(10, undefined)).toEqual({ admitted: false, floors: [] });
});

/**
 * Two of three nodes are to be admitted at once, or all three, because they were seen without a
 * memory. Tells which of them were and with which floor, if by now they stand like this.
 */
async function believedTogether(
  what: "found" | "outlived",
  ...now: readonly ("as it was seen" | "admitted" | "wiped" | "silent")[]
): Promise<string[]> {
  const admitted: string[] = [];
  const markOf = (name: string, nonce: string, founding = ""): OpenAdmission => ({
    runId: `run of ${name}`,
    id: name,
    nonce,
    lostForMs: 1_000,
    proposedFloor: 7,
    proposedMaxTtlMs: 1,
    founding,
  });
  const nodes = ["n1", "n2", "n3"].map((name, i) => {
    const run = async ({ source, args }: ScriptCall<unknown>): Promise<unknown> => {
      if (now[i] === "silent") throw new Error("TIMEOUT");
      if (source === scripts.openAdmission)
        return now[i] === "admitted" ? undefined : markOf(name, now[i] === "wiped" ? "another" : "t", args[5]);
      if (source !== scripts.admit) return 10;
      admitted.push(`${name} ${args[2]}`);
      return 10;
    };
    return { name, connection: { isUp: true, run }, status: undefined } as unknown as RedisNode;
  });
  const settings = fleetOf(nodes);
  // The second is not admitted, but its floor counts.
  const seen = nodes.map(({ name }, i) => ({
    name,
    status: { floor: i === 1 ? 50 : undefined } as NodeStatus,
    opened: markOf(name, "t"),
  }));
  const among = seen.slice(0, 2);
  if (what === "found") await foundFleet(settings, seen);
  else
    await admitAll(
      settings,
      among.map((node) => ({ kind: "outlived", node, waitMs: 0, among })),
    );
  return admitted.sort();
}

test("T1 a fleet is founded when none of its nodes has been admitted or has forgotten since it was seen, and otherwise not", async () => {
  expect(await believedTogether("found", "as it was seen", "as it was seen", "as it was seen")).toEqual(["n1 50", "n2 50", "n3 50"]);
  expect(await believedTogether("found", "admitted", "as it was seen", "as it was seen")).toEqual([]);
  expect(await believedTogether("found", "as it was seen", "wiped", "as it was seen")).toEqual([]);
  expect(await believedTogether("found", "as it was seen", "as it was seen", "silent")).toEqual([]);
});

test("T1 nodes are admitted without enough others only when all of them still stand as they were seen", async () => {
  expect(await believedTogether("outlived", "as it was seen", "as it was seen", "admitted")).toEqual(["n1 50", "n2 50"]);
  expect(await believedTogether("outlived", "admitted", "as it was seen", "admitted")).toEqual([]);
  expect(await believedTogether("outlived", "as it was seen", "wiped", "admitted")).toEqual([]);
});
