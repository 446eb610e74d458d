// The register: that it sees what it is there to see, and nothing where there is nothing.
import { describe, expect, test } from "vitest";
import type { Lease } from "../../../src/protocol/lease.js";
import { Chance } from "../../simulation/engine/chance.js";
import { ClientProcess } from "../../simulation/engine/client-process.js";
import { Timeline } from "../../simulation/engine/timeline.js";
import { type Claim, Register } from "../../simulation/world/register.js";

const timeline = new Timeline();
const client = new ClientProcess("p1", timeline, { rate: 1, wallAheadMs: 0, chance: new Chance(1) });

function judged(...given: readonly (Partial<Claim> & Pick<Claim, "token">)[]): readonly string[] {
  const register = new Register(() => timeline.now, "with exclusion");
  for (const each of given) {
    timeline.now = each.grantedAt ?? 0;
    const lease = { resource: "r", remainingMs: () => 1 } as unknown as Lease;
    register.given({
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
  return register.violations.map(({ promise }) => promise);
}

describe("the register", () => {
  test("T1 sees a token that is not above one given before it was asked for", () => {
    expect(judged({ token: 5, grantedAt: 10 }, { token: 4, beganAt: 11, grantedAt: 12 })).toEqual(["T1"]);
    expect(judged({ token: 5, grantedAt: 10 }, { token: 4, beganAt: 9, grantedAt: 12 })).toEqual([]);
    expect(judged({ token: 5, grantedAt: 10 }, { token: 6, beganAt: 11, grantedAt: 12 })).toEqual([]);
  });

  test("T2 sees a token that is given twice", () => {
    expect(judged({ token: 5, grantedAt: 10 }, { token: 5, beganAt: 9, grantedAt: 12 })).toEqual(["T2"]);
  });

  test("L1 sees a holder that is told too late, unless it was stopped meanwhile", () => {
    const told = (continuedAt: number): readonly string[] => {
      const register = new Register(() => 20, "with exclusion");
      const lease = { resource: "r", remainingMs: () => 0 } as unknown as Lease;
      const holder = new ClientProcess("p1", timeline, { rate: 1, wallAheadMs: 0, chance: new Chance(1) });
      holder.continuedAt = continuedAt;
      register.told({
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
      return register.violations.map(({ promise }) => promise);
    };
    expect(told(0)).toEqual(["L1"]);
    expect(told(19)).toEqual([]);
  });

  test("L2 sees a lease that is given while another one lasts", () => {
    const first = { token: 5, grantedAt: 10, validUntilAt: 100 };
    expect(judged(first, { token: 6, grantedAt: 50, validUntilAt: 150 })).toEqual(["L2"]);
    expect(judged({ ...first, endedAt: 40 }, { token: 6, grantedAt: 50, validUntilAt: 150 })).toEqual([]);
    expect(judged(first, { token: 6, grantedAt: 101, validUntilAt: 150 })).toEqual([]);
  });
});
