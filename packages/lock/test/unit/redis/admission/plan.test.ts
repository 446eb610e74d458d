// Which step is taken for which fleet, exhaustively for up to seven nodes.
import { describe, expect, test } from "vitest";
import { type FleetView, floorsNeeded, planAdmission, type SeenNode } from "../../../../src/redis/admission/plan.js";
import { forgottenLeasesEndMs, type NodeStatus, type OpenAdmission, type Roster } from "../../../../src/redis/record.js";

/** unseen · admitted · kept everything · restarted with its record · wiped */
type Kind = "unseen" | "admitted" | "durable" | "restarted" | "wiped";
const kinds: readonly Kind[] = ["unseen", "admitted", "durable", "restarted", "wiped"];
const maxTtlMs = 1_000;
const members = [1, 2, 3, 4, 5, 6, 7].map((i) => ({ id: `n${i}`, address: `n${i}`, since: 1 }));
const roster: Roster = { generation: 1, members, maxTtlMs, formerMaxTtlMs: maxTtlMs };

function statusOf(kind: Kind, name: string): NodeStatus {
  const server = {
    runId: `run of ${name}`,
    admitted: kind === "wiped" ? "" : "its admission",
    version: "7.0.0",
    role: "master",
    isReplicated: false,
    timeMs: 0,
    roster: undefined,
    openForMs: 0,
    promised: 0,
  };
  const nothing = {
    floor: undefined,
    admission: undefined,
    id: undefined,
    fleet: undefined,
    unknownFormat: undefined,
  };
  if (kind === "wiped") return { ...server, ...nothing, wasDurable: false };
  const runId = kind === "admitted" ? server.runId : "an earlier run";
  return {
    ...server,
    floor: 1,
    admission: { standing: "votes", runId, counterFloor: 1, generation: "1-m", epoch: "e" },
    id: name,
    fleet: "f",
    roster,
    wasDurable: true,
    unknownFormat: undefined,
  };
}

function seen(kind: Kind, name: string): SeenNode {
  const status = statusOf(kind, name);
  const member = members.find(({ id }) => id === name);
  if (kind === "admitted") return { name, status };
  const opened: OpenAdmission = {
    runId: status.runId,
    // What was wiped forgot the id with which it was admitted.
    id: kind === "wiped" ? `another of ${name}` : name,
    nonce: "t",
    lostForMs: 400,
    proposedFloor: 1,
    proposedMaxTtlMs: maxTtlMs,
    founding: "",
  };
  return { name, status, opened, ...(member === undefined ? {} : { member }), isDurable: kind === "durable" };
}

function viewOf(fleet: readonly Kind[]): FleetView {
  const isRemembered = fleet.some((kind) => kind !== "unseen" && kind !== "wiped");
  return {
    size: fleet.length,
    roster: isRemembered ? roster : undefined,
    unseen: fleet.flatMap((kind, index) => (kind === "unseen" ? [`n${index + 1}`] : [])),
    seen: fleet.flatMap((kind, index) => (kind === "unseen" ? [] : [seen(kind, `n${index + 1}`)])),
  };
}

/** Every fleet of the size, up to the order of its nodes. */
function fleets(size: number, from = 0): readonly (readonly Kind[])[] {
  if (size === 0) return [[]];
  return kinds.slice(from).flatMap((kind, index) => fleets(size - 1, from + index).map((rest) => [kind, ...rest]));
}

function count(fleet: readonly Kind[], ...wanted: readonly Kind[]): number {
  return fleet.filter((kind) => wanted.includes(kind)).length;
}

const every = [1, 2, 3, 4, 5, 6, 7].flatMap((size) => fleets(size));

describe("the plan", () => {
  test("T2 the visits for a rebuilding meet every quorum that may have stored a token, for every fleet size", () => {
    for (let size = 1; size <= 31; size++) {
      const majority = Math.floor(size / 2) + 1;
      // A quorum with the rebuilt node has majority − 1 members among the size − 1 others.
      expect(floorsNeeded(size) + (majority - 1)).toBeGreaterThan(size - 1);
      expect(floorsNeeded(size) - 1 + (majority - 1)).toBeLessThanOrEqual(size - 1);
    }
  });

  test("every quarantined node is in a step, and no other node is", () => {
    for (const fleet of every) {
      const view = viewOf(fleet);
      const named = planAdmission(view).flatMap((step) => ("nodes" in step ? step.nodes : [step.node]));
      const quarantined = view.seen.filter(({ opened }) => opened !== undefined);
      const expected = count(fleet, "durable") > 0 ? quarantined.filter(({ isDurable }) => isDurable) : quarantined;
      expect(named).toEqual(expected);
    }
  });

  test("believes first those that kept everything", () => {
    for (const fleet of every) {
      const steps = planAdmission(viewOf(fleet));
      expect(steps.filter(({ kind }) => kind === "durable")).toHaveLength(count(fleet, "durable"));
    }
  });

  test("T2 rebuilds only when enough admitted others were seen", () => {
    for (const fleet of every) {
      const steps = planAdmission(viewOf(fleet));
      const enough = count(fleet, "admitted") >= floorsNeeded(fleet.length);
      const expected = enough && count(fleet, "durable") === 0 ? count(fleet, "restarted", "wiped") : 0;
      expect(steps.filter(({ kind }) => kind === "rebuilt")).toHaveLength(expected);
    }
  });

  test("T2 falls back to the wall clock only when enough admitted others can never be found", () => {
    for (const fleet of every) {
      for (const step of planAdmission(viewOf(fleet))) {
        if (step.kind === "found") expect(count(fleet, "wiped")).toBe(fleet.length);
        if (step.kind === "outlived") expect(count(fleet, "admitted", "unseen")).toBeLessThan(floorsNeeded(fleet.length));
      }
    }
  });

  test("is never stuck while all nodes are seen", () => {
    for (const fleet of every.filter((each) => !each.includes("unseen"))) {
      expect(planAdmission(viewOf(fleet)).map(({ kind }) => kind)).not.toContain("blocked");
    }
  });

  test("L2 waits until every lease that may be forgotten is over, except where a whole fleet is founded", () => {
    expect(forgottenLeasesEndMs(maxTtlMs)).toBe(1_040);
    for (const fleet of every) {
      for (const step of planAdmission(viewOf(fleet))) if ("waitMs" in step) expect(step.waitMs).toBe(640);
    }
  });

  test("says why nothing can be done", () => {
    const reasonOf = (...fleet: Kind[]) => planAdmission(viewOf(fleet)).map((step) => (step.kind === "blocked" ? step.reason : step.kind));
    expect(reasonOf("wiped", "wiped", "unseen")).toEqual([
      "a new fleet is founded only when all 3 nodes can be reached; n3 is not; locker.fleet.foundWithout founds it all the same",
    ]);
    expect(reasonOf("admitted", "admitted", "wiped", "unseen", "unseen")).toEqual([
      "2 of 5 nodes are admitted, 3 are needed to rebuild another; n4 and n5 cannot be reached",
    ]);
  });

  test("M1 lets no node vote for a fleet of which this list of nodes knows too little", () => {
    const [step, ...others] = planAdmission({ ...viewOf(["restarted", "wiped", "wiped"]), roster: undefined });
    expect(step).toMatchObject({ kind: "blocked", reason: expect.stringMatching(/^n1 belongs to a fleet .*; correct the list$/) });
    expect(others).toEqual([]);
  });

  test("T2 believes a node at once only if it is durable, was so when it was admitted, and has a whole record of this fleet", () => {
    const view = viewOf(["admitted", "admitted", "durable"]);
    const planned = (change: Partial<NodeStatus>, now: Pick<SeenNode, "isDurable"> = {}) =>
      planAdmission({
        ...view,
        seen: view.seen.map((node) => (node.opened === undefined ? node : { ...node, ...now, status: { ...node.status, ...change } })),
      }).map(({ kind }) => kind);
    expect(planned({})).toEqual(["durable"]);
    expect(planned({}, { isDurable: false })).toEqual(["rebuilt"]);
    const gaps = ["admission", "id", "fleet", "floor", "roster"] as const;
    for (const change of [{ wasDurable: false }, ...gaps.map((field) => ({ [field]: undefined }))])
      expect([change, planned(change)]).toEqual([change, ["rebuilt"]]);
  });

  test("does not take a copy of another node's disk for a node that kept everything", () => {
    const view = viewOf(["admitted", "admitted", "durable"]);
    const copied = {
      ...view,
      seen: view.seen.map((node) => ({ ...node, status: { ...node.status, id: "n3" } })),
    };
    expect(planAdmission(copied).map(({ kind }) => kind)).toEqual(["rebuilt"]);
  });
});
