// The lease checker: it sees each violation, and none where there is none.
import { describe, expect, test } from "vitest";
import type { Lease } from "../../../src/protocol/locker.js";
import { Chance } from "../../simulation/engine/chance.js";
import { ClientProcess } from "../../simulation/engine/client-process.js";
import { Timeline } from "../../simulation/engine/timeline.js";
import { type Holding, LeaseChecker } from "../../simulation/world/lease-checker.js";

const timeline = new Timeline();
const client = new ClientProcess("p1", timeline, { rate: 1, wallAheadMs: 0, chance: new Chance(1) });

function judged(...given: readonly (Partial<Holding> & Pick<Holding, "token">)[]): readonly string[] {
  const checker = new LeaseChecker(() => timeline.now, "with exclusion");
  for (const each of given) {
    timeline.now = each.grantedAt ?? 0;
    const lease = { resource: "r", remainingMs: () => 1 } as unknown as Lease;
    checker.given({
      client,
      lease,
      resources: ["r"],
      beganAt: 0,
      grantedAt: 0,
      validUntilAt: 0,
      endedAt: undefined,
      asks: "the lease",
      ...each,
    });
  }
  return checker.violations.map(({ promise }) => promise);
}

describe("the lease checker", () => {
  test("T1 sees a token that is not above one given before it was asked for", () => {
    expect(judged({ token: 5, grantedAt: 10 }, { token: 4, beganAt: 11, grantedAt: 12 })).toEqual(["T1"]);
    expect(judged({ token: 5, grantedAt: 10 }, { token: 4, beganAt: 9, grantedAt: 12 })).toEqual([]);
    expect(judged({ token: 5, grantedAt: 10 }, { token: 6, beganAt: 11, grantedAt: 12 })).toEqual([]);
  });

  test("T2 sees a token that is given twice", () => {
    expect(judged({ token: 5, grantedAt: 10 }, { token: 5, beganAt: 9, grantedAt: 12 })).toEqual(["T2"]);
  });

  test("L1 sees a holder that learns of the end too late, unless it was stopped meanwhile", () => {
    const judgedAt = (continuedAt: number): readonly string[] => {
      const checker = new LeaseChecker(() => 20, "with exclusion");
      const lease = { resource: "r", remainingMs: () => 0 } as unknown as Lease;
      const holder = new ClientProcess("p1", timeline, { rate: 1, wallAheadMs: 0, chance: new Chance(1) });
      holder.continuedAt = continuedAt;
      checker.learnedOfEnd({
        client: holder,
        lease,
        resources: ["r"],
        token: 1,
        beganAt: 0,
        grantedAt: 0,
        validUntilAt: 10,
        endedAt: undefined,
        asks: "the lease",
      });
      return checker.violations.map(({ promise }) => promise);
    };
    expect(judgedAt(0)).toEqual(["L1"]);
    expect(judgedAt(19)).toEqual([]);
  });

  test("L2 sees a lease that is given while another one lasts", () => {
    const first = { token: 5, grantedAt: 10, validUntilAt: 100 };
    expect(judged(first, { token: 6, grantedAt: 50, validUntilAt: 150 })).toEqual(["L2"]);
    expect(judged({ ...first, endedAt: 40 }, { token: 6, grantedAt: 50, validUntilAt: 150 })).toEqual([]);
    expect(judged(first, { token: 6, grantedAt: 101, validUntilAt: 150 })).toEqual([]);
  });
});
