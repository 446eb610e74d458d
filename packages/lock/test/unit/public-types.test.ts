// What TypeScript lets a user write, and refuses. Checked by the compiler when the tests are built; nothing
// here is run against a server.
import { expectTypeOf, test } from "vitest";
import type * as lock from "../../src/index.js";
import type { AcquireOptions, Attempted, Lease, LockError, Locker, LockerOptions } from "../../src/index.js";

declare const locker: Locker;

test("options are optional, but not undefined by accident, and each call takes what it can use", () => {
  expectTypeOf<{ nodes: readonly string[]; ttlMs: number }>().toExtend<LockerOptions>();
  expectTypeOf<{ ttlMs: undefined }>().not.toExtend<AcquireOptions>();
  expectTypeOf<keyof AcquireOptions>().toEqualTypeOf<"renew" | "maxHoldMs" | "ttlMs" | "waitMs" | "signal">();
  expectTypeOf<keyof lock.TryAcquireOptions>().toEqualTypeOf<"renew" | "maxHoldMs" | "ttlMs">();
  expectTypeOf<keyof lock.UsingOptions>().toEqualTypeOf<"maxHoldMs" | "ttlMs" | "waitMs" | "signal">();
  const wrong = {
    // @ts-expect-error a port is no node
    node: (): LockerOptions => ({ nodes: [6379] }),
    // @ts-expect-error a reason is needed
    force: (): unknown => locker.fleet.forceRelease("r"),
    // @ts-expect-error using always renews
    using: (): unknown => locker.using("r", { renew: false }, () => 7),
    // @ts-expect-error the token is the lease's own
    token: (lease: Lease): number => (lease.token = 7),
    // @ts-expect-error a lost attempt has no lease
    lost: (attempt: Attempted): Lease => attempt.lease,
  };
  expectTypeOf(wrong).toBeObject();
});

test("what is told can be told apart: ballots by their kind, attempts by ok, errors by their code", () => {
  const seconds = (ballot: lock.GrantBallot): number => {
    switch (ballot.kind) {
      case "granted":
        return ballot.token;
      case "held":
        return ballot.remainingMs;
      case "quarantined":
        return ballot.readyInMs ?? 0;
      case "unreachable":
        return ballot.cause.length;
    }
  };
  expectTypeOf(seconds).returns.toBeNumber();
  const read = (attempt: Attempted): Lease | "held" | "no_quorum" | "too_slow" => (attempt.ok ? attempt.lease : attempt.reason);
  expectTypeOf(read).returns.toEqualTypeOf<Lease | "held" | "no_quorum" | "too_slow">();
  expectTypeOf<LockError["code"]>().toEqualTypeOf<
    "LOCK_HELD" | "LOCK_NO_QUORUM" | "LOCK_TOO_SLOW" | "LOCK_ABORTED" | "LEASE_LOST" | "FLEET_MISMATCH"
  >();
  expectTypeOf<lock.Inspection["state"]>().toEqualTypeOf<"held" | "free" | "split" | "unknown">();
});

test("using gives what the routine gives, and leases and lockers are disposed of by a scope", () => {
  const calls = {
    plain: () => locker.using("r", () => 7),
    async: () => locker.using(["a", "b"] as const, { ttlMs: 5 }, async (held) => held.token.toFixed()),
    nothing: () => locker.using("r", undefined, async () => {}),
  };
  expectTypeOf(calls.plain).returns.resolves.toBeNumber();
  expectTypeOf(calls.async).returns.resolves.toBeString();
  expectTypeOf(calls.nothing).returns.resolves.toBeVoid();
  expectTypeOf<Lease>().toExtend<AsyncDisposable>();
  expectTypeOf<Locker>().toExtend<AsyncDisposable>();
});
