// JSON Web Tokens, the second kind of credential. Audience and issuer are fixed by configuration and
// the algorithms by the kind of key, never read from the token. A token without an expiry is
// refused. Shared secrets and public keys exclude each other: a public key would otherwise pass as
// the secret.
import { createHash } from "node:crypto";
import { createRemoteJWKSet, errors, type JWKSCacheInput, type JWTPayload, type JWTVerifyOptions, jwksCache, jwtVerify } from "jose";
import { characterFault, type Principal, parseScope } from "./names.js";

export interface JwtConfig {
  readonly secret?: string | undefined;
  readonly jwksUrl?: string | undefined;
  /** Public keys that were fetched longer ago do not count. */
  readonly jwksMaxAgeMs?: number | undefined;
  readonly audience: string;
  readonly issuer?: string | undefined;
}

type JwtAnswer =
  | { readonly kind: "principal"; readonly principal: Principal }
  | { readonly kind: "refused"; readonly reason: string }
  /** The keys could not be fetched: nothing is known about the token. */
  | { readonly kind: "keys_unavailable" };

const CLOCK_TOLERANCE_SECONDS = 5;
const algorithmsOf = {
  secret: ["HS256", "HS384", "HS512"],
  publicKeys: ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"],
};
/** A withdrawn key counts so long at most; issuers change theirs with hours of notice. */
const JWKS_MAX_AGE_MS = 300_000;
const MAX_REMEMBERED_TOKENS = 1_000;

export class JwtVerifier {
  readonly #keys: JwtKeys;
  // Verified tokens by their hash, oldest first: a signature is checked once per token, not once
  // per request.
  readonly #remembered = new Map<string, Remembered>();

  constructor(config: JwtConfig) {
    const options: JWTVerifyOptions = {
      algorithms: algorithmsOf[config.jwksUrl === undefined ? "secret" : "publicKeys"],
      audience: config.audience,
      clockTolerance: CLOCK_TOLERANCE_SECONDS,
      requiredClaims: ["exp", "sub"],
      ...(config.issuer === undefined ? {} : { issuer: config.issuer }),
    };
    this.#keys =
      config.jwksUrl === undefined
        ? sharedSecret(config.secret ?? "", options)
        : publicKeys(config.jwksUrl, config.jwksMaxAgeMs ?? JWKS_MAX_AGE_MS, options);
  }

  /** Fetches the public keys now; tokens of a withdrawn one are refused from then on. */
  async reload(): Promise<void> {
    await this.#keys.reload();
  }

  async check(token: string): Promise<JwtAnswer> {
    const hash = createHash("sha256").update(token).digest("base64");
    const known = this.#remembered.get(hash);
    // Read before the token is verified: keys that come meanwhile may lack the one it was signed
    // with.
    const { edition } = this.#keys;
    if (known !== undefined && known.edition === edition && known.expiresAt > Date.now())
      return { kind: "principal", principal: known.principal };
    let payload: JWTPayload;
    try {
      payload = await this.#keys.verify(token);
    } catch (error) {
      this.#remembered.delete(hash);
      return isAboutTheToken(error) ? { kind: "refused", reason: reasonOf(error) } : { kind: "keys_unavailable" };
    }
    const principal = principalOf(payload);
    if (principal === undefined) return { kind: "refused", reason: "its scope or sub claim is missing or not understood" };
    if (edition !== undefined) this.#remember(hash, { principal, edition, expiresAt: (payload.exp ?? 0) * 1_000 });
    return { kind: "principal", principal };
  }

  #remember(hash: string, remembered: Remembered): void {
    this.#remembered.set(hash, remembered);
    if (this.#remembered.size <= MAX_REMEMBERED_TOKENS) return;
    const [oldest] = this.#remembered.keys();
    if (oldest !== undefined) this.#remembered.delete(oldest);
  }
}

interface Remembered {
  readonly principal: Principal;
  readonly expiresAt: number;
  /** The keys it was verified with. */
  readonly edition: object;
}

/**
 * `scope` is a list separated by spaces (RFC 8693), each item like `write:orders/`, with the prefix
 * percent-encoded where needed. An issuer writes the scopes of other services beside these, such as
 * `write:org` or `read:user`. Here a prefix is therefore a whole folder of names: empty, or with a
 * slash at its end; anything else grants nothing.
 */
function principalOf(payload: JWTPayload): Principal | undefined {
  if (typeof payload.scope !== "string" || !isName(payload.sub)) return undefined;
  const scopes = [];
  for (const item of payload.scope.split(" ")) {
    const scope = parseScope(decodeLenient(item));
    if (scope !== undefined && (scope.prefix === "" || scope.prefix.endsWith("/"))) scopes.push(scope);
  }
  return scopes.length === 0 ? undefined : { id: `jwt:${payload.sub}`, scopes };
}

/** The subject is stored as the holder of what it writes, and logged. */
function isName(subject: unknown): subject is string {
  return typeof subject === "string" && subject !== "" && Buffer.byteLength(subject) <= 200 && characterFault(subject) === undefined;
}

function decodeLenient(item: string): string {
  try {
    return decodeURIComponent(item);
  } catch {
    return "";
  }
}

const keyProblems = [errors.JWKSTimeout, errors.JWKSInvalid, errors.JWKInvalid];

function isAboutTheToken(error: unknown): boolean {
  return error instanceof errors.JOSEError && !keyProblems.some((kind) => error instanceof kind) && error.code !== "ERR_JOSE_GENERIC";
}

function reasonOf(error: unknown): string {
  if (error instanceof errors.JWTExpired) return "it has expired";
  if (error instanceof errors.JWTClaimValidationFailed) return `its ${error.claim} claim is missing or not the expected one`;
  if (error instanceof errors.JOSEAlgNotAllowed) return "its algorithm is not allowed";
  return "its signature or form is not valid";
}

// The keys that JWTs are checked with: one shared secret, or the public keys of an issuer. Public
// keys are fetched again before they are older than their maximum age, so that a withdrawn key
// stops counting; while they cannot be fetched, the last ones count until that age.

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
