// What TypeScript lets a user write. Checked by the compiler when the tests are built; nothing here
// is run against a server.
import type { RedisOptions } from "ioredis";
import { expectTypeOf, test } from "vitest";
import type * as lock from "../../src/index.js";
import type { AcquireOptions, Attempted, createLocker, Lease, LockError, Locker, LockerOptions } from "../../src/index.js";

declare const locker: Locker;

test("options are optional, but not undefined by accident", () => {
  expectTypeOf<{ nodes: string[] }>().toExtend<LockerOptions>();
  expectTypeOf<{ nodes: readonly string[]; ttlMs: number }>().toExtend<LockerOptions>();
  expectTypeOf<{ nodes: string[]; ttl: number }>().not.toEqualTypeOf<LockerOptions>();
  expectTypeOf<{ ttlMs: undefined }>().not.toExtend<AcquireOptions>();
  expectTypeOf<Parameters<typeof createLocker>>().toEqualTypeOf<[options: LockerOptions]>();
  expectTypeOf<ReturnType<typeof createLocker>>().toEqualTypeOf<Locker>();
  expectTypeOf<string | RedisOptions>().toExtend<NonNullable<LockerOptions["nodes"]>[number]>();
  // @ts-expect-error a port is no node
  const wrong: LockerOptions = { nodes: [6379] };
  expectTypeOf(wrong).toBeObject();
});

test("each call takes what it can use, and no more", () => {
  expectTypeOf<Parameters<Locker["acquire"]>>().toEqualTypeOf<
    [resources: string | readonly string[], options?: AcquireOptions | undefined]
  >();
  expectTypeOf<keyof AcquireOptions>().toEqualTypeOf<"renew" | "maxHoldMs" | "ttlMs" | "waitMs" | "signal">();
  expectTypeOf<keyof lock.TryAcquireOptions>().toEqualTypeOf<"renew" | "maxHoldMs" | "ttlMs">();
  expectTypeOf<keyof lock.UsingOptions>().toEqualTypeOf<"maxHoldMs" | "ttlMs" | "waitMs" | "signal">();
  expectTypeOf<Parameters<lock.Fleet["forceRelease"]>>().toEqualTypeOf<[resource: string, options: lock.ForceReleaseOptions]>();
  expectTypeOf<keyof lock.ForceReleaseOptions>().toEqualTypeOf<"reason" | "token">();
  // @ts-expect-error a reason is needed
  const wrong = (locker: Locker): unknown => locker.fleet.forceRelease("r");
  expectTypeOf(wrong).toBeFunction();
});

test("each call answers what it promises", () => {
  expectTypeOf<ReturnType<Locker["acquire"]>>().resolves.toEqualTypeOf<Lease>();
  expectTypeOf<ReturnType<Locker["tryAcquire"]>>().resolves.toEqualTypeOf<Attempted>();
  expectTypeOf<ReturnType<lock.Fleet["issued"]>>().resolves.toBeBoolean();
  expectTypeOf<ReturnType<Locker["inspect"]>>().resolves.toEqualTypeOf<lock.Inspection>();
  expectTypeOf<lock.Inspection["state"]>().toEqualTypeOf<"held" | "free" | "split" | "unknown">();
  expectTypeOf<ReturnType<lock.Fleet["forceRelease"]>>().resolves.toEqualTypeOf<lock.ForcedRelease>();
  expectTypeOf<ReturnType<Locker["ready"]>>().resolves.toEqualTypeOf<lock.FleetState>();
  expectTypeOf<ReturnType<lock.Fleet["doctor"]>>().resolves.toEqualTypeOf<readonly lock.Finding[]>();
  expectTypeOf<lock.Finding["severity"]>().toEqualTypeOf<"error" | "warning" | "info">();
  expectTypeOf<ReturnType<Locker["close"]>>().toEqualTypeOf<Promise<void>>();
  expectTypeOf<ReturnType<Lease["extend"]>>().resolves.toHaveProperty("outcome").toEqualTypeOf<"renewed" | "unknown">();
  expectTypeOf<ReturnType<Lease["release"]>>().resolves.toHaveProperty("outcome").toEqualTypeOf<"free" | "unconfirmed">();
  expectTypeOf<Lease["signal"]>().toEqualTypeOf<AbortSignal>();
  expectTypeOf<ReturnType<Lease["onDanger"]>>().toEqualTypeOf<() => void>();
});

test("a token is a number, and text only after it was read", () => {
  expectTypeOf<ReturnType<typeof lock.parseToken>>().toEqualTypeOf<number | undefined>();
  expectTypeOf<typeof lock.isToken>().guards.toBeNumber();
  expectTypeOf<Parameters<typeof lock.formatToken>>().toEqualTypeOf<[token: number]>();
  expectTypeOf<Parameters<typeof lock.compareTokens>>().toEqualTypeOf<[a: number, b: number]>();
});

test("what a node answered can be told apart by its kind", () => {
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
  expectTypeOf<LockError["ballots"]>().toEqualTypeOf<readonly lock.Ballot[]>();
  expectTypeOf<LockError["resource"]>().toEqualTypeOf<string | undefined>();
  expectTypeOf<LockError["reason"]>().toEqualTypeOf<lock.LeaseLostReason | undefined>();
});

test("an attempt has a lease exactly when it is ok", () => {
  const read = (attempt: Attempted): Lease | "held" | "no_quorum" | "too_slow" => (attempt.ok ? attempt.lease : attempt.reason);
  expectTypeOf(read).returns.toEqualTypeOf<Lease | "held" | "no_quorum" | "too_slow">();
  // @ts-expect-error a lost attempt has no lease
  const wrong = (attempt: Attempted): Lease => attempt.lease;
  expectTypeOf(wrong).toBeFunction();
});

test("using gives what the routine gives", () => {
  const calls = {
    plain: () => locker.using("r", () => 7),
    async: () => locker.using(["a", "b"] as const, { ttlMs: 5 }, async (held) => held.token.toFixed()),
    nothing: () => locker.using("r", undefined, async () => {}),
  };
  expectTypeOf(calls.plain).returns.resolves.toBeNumber();
  expectTypeOf(calls.async).returns.resolves.toBeString();
  expectTypeOf(calls.nothing).returns.resolves.toBeVoid();
  // @ts-expect-error using always renews
  const wrong = (): unknown => locker.using("r", { renew: false }, () => 7);
  expectTypeOf(wrong).toBeFunction();
});

test("a lease cannot be changed by its holder, and is disposed of by a scope", () => {
  expectTypeOf<Lease["token"]>().toBeNumber();
  expectTypeOf<Lease>().toExtend<AsyncDisposable>();
  expectTypeOf<Locker>().toExtend<AsyncDisposable>();
  // @ts-expect-error the token is the lease's own
  const wrong = (lease: Lease): number => (lease.token = 7);
  expectTypeOf(wrong).toBeFunction();
  expectTypeOf<Lease["resources"]>().toEqualTypeOf<readonly string[]>();
});

test("errors have stable codes", () => {
  expectTypeOf<LockError["code"]>().toEqualTypeOf<
    "LOCK_HELD" | "LOCK_NO_QUORUM" | "LOCK_TOO_SLOW" | "LOCK_ABORTED" | "LEASE_LOST" | "FLEET_MISMATCH"
  >();
});
