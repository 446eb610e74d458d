// Asks the lock whether it ever issued a token, once per raise, through the lock's public API.
// "Could not be asked" must stay distinct from "never issued": the first is a fault, the second an
// alarm (G4).
import type { Fleet, Locker } from "@palisade/lock";
import type { ReadinessCheck, VerifyToken } from "./fenced-store.js";
import type { Log } from "./observe/log.js";

/** The part of a locker that verification needs. */
type LockClient = Pick<Locker, "ready"> & { readonly fleet: Pick<Fleet, "issued"> };

// A write waits for the answer, so it must come soon or not at all.
const ANSWER_WITHIN_MS = 1_000;

// Imported only here: a gateway that trusts tokens needs no Redis client in its memory.
export async function connectToLock(redisUrls: readonly string[], namespace: string | undefined): Promise<Locker> {
  const { createLocker } = await import("@palisade/lock");
  return createLocker({
    nodes: redisUrls,
    label: "palisade-gateway",
    waitMs: ANSWER_WITHIN_MS,
    ...(namespace === undefined ? {} : { namespace }),
  });
}

/** Not "failed": holders whose token already is the fence can write without the lock. */
export async function lockReadiness(lock: LockClient): Promise<ReadinessCheck> {
  try {
    await lock.ready();
    return { name: "lock", status: "ok", detail: "a quorum of its nodes answers" };
  } catch (error) {
    return {
      name: "lock",
      status: "warning",
      detail: `tokens that would raise a fence cannot be verified: ${error instanceof Error ? error.message : String(error)}`,
    };
  }
}

export function verifyWith(lock: LockClient, log: Log): VerifyToken {
  return async (resource, token) => {
    try {
      return (await lock.fleet.issued(resource, token)) ? "issued" : "unissued";
    } catch (error) {
      log.warn({ resource, token, err: error }, "the lock could not be asked whether it issued this token");
      return "unreachable";
    }
  };
}
