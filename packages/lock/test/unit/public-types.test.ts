// What TypeScript lets a user write. Checked by the compiler when the tests are built; nothing here is run against a server.
import { expectTypeOf, test } from "vitest";
import type { AcquireOptions, Attempted, createLocker, Lease, LockError, Locker, LockerOptions } from "../../src/index.js";

declare const locker: Locker;

test("options are optional, but not undefined by accident", () => {
  expectTypeOf<{ nodes: string[] }>().toExtend<LockerOptions>();
  expectTypeOf<{ nodes: readonly string[]; ttlMs: number }>().toExtend<LockerOptions>();
  expectTypeOf<{ nodes: string[]; ttl: number }>().not.toEqualTypeOf<LockerOptions>();
  expectTypeOf<{ ttlMs: undefined }>().not.toExtend<AcquireOptions>();
  expectTypeOf<Parameters<typeof createLocker>>().toEqualTypeOf<[options: LockerOptions]>();
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
