// Asks the lock whether it ever issued a token, for the store's one question per raise. Only through the lock's public API.
// Must not turn "could not be asked" into "never issued": the first is the world's fault, the second an alarm (G4).
import type { Log } from "./observe/log.js";
import type { VerifyToken } from "./store/fenced-store.js";

/** The part of a locker that verification needs. */
export interface IssuedTokens {
  issued(resource: string, token: number): Promise<boolean>;
  close(): Promise<void>;
}

// Loaded only here: a gateway that takes tokens on trust needs no Redis client in its memory.
export async function connectToLock(redisUrls: readonly string[], namespace: string | undefined): Promise<IssuedTokens> {
  const lock = (await import("@palisade/lock")) as unknown as { createLocker(options: object): IssuedTokens };
  return lock.createLocker({ nodes: [...redisUrls], label: "palisade-gateway", ...(namespace === undefined ? {} : { namespace }) });
}

export function verifyThrough(lock: IssuedTokens, log: Log): VerifyToken {
  return async (resource, token) => {
    try {
      return (await lock.issued(resource, token)) ? "issued" : "unissued";
    } catch (error) {
      log.warn({ resource, token, err: error }, "the lock could not be asked whether it issued this token");
      return "unreachable";
    }
  };
}
