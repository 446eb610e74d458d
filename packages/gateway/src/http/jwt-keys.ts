// The keys that JWTs are checked with: one shared secret, or the public keys of an issuer. Public
// keys are fetched again before they are older than their maximum age, so that a withdrawn key
// stops counting; while they cannot be fetched, the last ones count until that age.
import { createRemoteJWKSet, type JWKSCacheInput, type JWTPayload, type JWTVerifyOptions, jwksCache, jwtVerify } from "jose";

export interface JwtKeys {
  verify(token: string): Promise<JWTPayload>;
  /**
   * Changes whenever the keys do: what was verified under another edition has to be verified again.
   * Undefined while there are no keys that are young enough.
   */
  readonly edition: object | undefined;
  /** Fetches the keys now. Fails when that fails; the last keys then keep their age. */
  reload(): Promise<void>;
}

export function sharedSecret(secret: string, options: JWTVerifyOptions): JwtKeys {
  const key = new TextEncoder().encode(secret);
  return {
    verify: async (token) => (await jwtVerify(token, key, options)).payload,
    edition: key,
    reload: async () => undefined,
  };
}

const PAUSE_BETWEEN_FETCHES_MS = 1_000;

export function publicKeys(url: string, maxAgeMs: number, options: JWTVerifyOptions): JwtKeys {
  const fetched = {} as JWKSCacheInput;
  const keys = createRemoteJWKSet(new URL(url), {
    timeoutDuration: 3_000,
    cooldownDuration: Math.min(5_000, maxAgeMs),
    cacheMaxAge: maxAgeMs,
    [jwksCache]: fetched,
  });
  let triedAt = Number.NEGATIVE_INFINITY;
  // From half of the maximum age on, in the background: an issuer that is away for less than the
  // other half is not noticed.
  const keepYoung = (): void => {
    const now = performance.now();
    if (fetched.uat === undefined || Date.now() - fetched.uat < maxAgeMs / 2 || now - triedAt < PAUSE_BETWEEN_FETCHES_MS) return;
    triedAt = now;
    keys.reload().catch(() => undefined); // The keys grow old, and verify() then says that they cannot be fetched.
  };
  return {
    verify: async (token) => (await jwtVerify(token, keys, options)).payload,
    get edition() {
      keepYoung();
      return keys.fresh ? fetched.jwks : undefined;
    },
    reload: () => keys.reload(),
  };
}
