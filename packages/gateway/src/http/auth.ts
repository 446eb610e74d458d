// Who is calling, from the Authorization header alone: an API key, a JWT, or, where the settings want no
// credentials, a caller on this machine. Runs before the body is read. An answer does not say whether
// a credential was unknown, wrong or revoked, and no credential reaches a log or an answer.
import { createHash, timingSafeEqual } from "node:crypto";
import { createRemoteJWKSet, errors, type JWKSCacheInput, type JWTPayload, type JWTVerifyOptions, jwksCache, jwtVerify } from "jose";
import { z } from "zod";
import type { ApiKeyFile } from "./api-keys.js";
import { actions, characterFault, everything, type Principal, parseScope } from "./names.js";
import { notApplied, Problem } from "./problems.js";

/** Where a request came from, apart from what its sender says of itself. */
export interface Origin {
  readonly headers: { readonly host: string | undefined; readonly forwarded: boolean };
  readonly socket: { readonly remoteAddress?: string | undefined };
}

export interface Authenticator {
  authenticate(authorization: string | undefined, origin: Origin): Principal | Problem | Promise<Principal | Problem>;
}

const BEARER = /^Bearer +([^ \n]+)$/i;
// Three base64url parts with dots between them. API keys made here contain no dots.
const JWT_SHAPE = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/;

/** What is there now: a keyring may be replaced while the gateway runs. */
interface AcceptedCredentials {
  readonly keyring: ApiKeyring;
  readonly jwt: JwtVerifier | undefined;
}

export function credentialAuthenticator(accepted: AcceptedCredentials): Authenticator {
  return {
    authenticate(authorization) {
      if (authorization === undefined) return unauthenticated("This gateway wants a credential: Authorization: Bearer <API key or JWT>.");
      const credential = BEARER.exec(authorization)?.[1];
      if (credential === undefined) return unauthenticated("The Authorization header must be sent once, as Bearer and one credential.");
      const { keyring, jwt } = accepted;
      const principal = keyring.find(credential);
      if (principal !== undefined) return principal;
      if (jwt !== undefined && JWT_SHAPE.test(credential)) return jwt.check(credential);
      return unauthenticated("The credential is not valid here.");
    },
  };
}

const developer: Principal = { id: "anonymous", scopes: everything };
const LOOPBACK_HOST = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?$/i;

const LOOPBACK_ADDRESS = /^(?:(?:::ffff:)?127(?:\.\d{1,3}){3}|::1)$/;

/**
 * For development: every caller on the loopback interface may do everything. The address of the
 * connection decides, because a caller from outside can send any header. A connection that is
 * closed already has no address and is refused: its request may still be executed. A web page on
 * the same machine could be directed here by a name that resolves to 127.0.0.1; the Host header it
 * sends gives that away. A proxy on this machine connects from here for callers who are elsewhere, and
 * need not say so: this is why it must be asked for.
 */
export const openAuthenticator: Authenticator = {
  authenticate(_authorization, { headers, socket }) {
    if (!LOOPBACK_ADDRESS.test(socket.remoteAddress ?? ""))
      return onlyHere("this connection does not come from a loopback address of this machine");
    if (headers.forwarded) return onlyHere("a proxy passed this request on for somebody else");
    if (headers.host !== undefined && !LOOPBACK_HOST.test(headers.host)) return onlyHere("the Host header names something else");
    return developer;
  },
};

function onlyHere(reason: string): Problem {
  return new Problem("forbidden_scope", `Without credentials this gateway answers only callers on its own machine; ${reason}.`);
}

function unauthenticated(detail: string): Problem {
  return new Problem("unauthenticated", detail);
}

// 256 random bits in base64url. A key made elsewhere is accepted if it is long enough to hold 128
// bits; a shorter one could be found from its hash.
const MIN_KEY_LENGTH = 22;
const KEY_SHAPE = /^[A-Za-z0-9\-._~+/]+=*$/;

interface StoredKey {
  readonly hash: Buffer;
  readonly principal: Principal;
  readonly expiresAtMs: number;
}

/** API keys, stored only as SHA-256. */
export class ApiKeyring {
  readonly #byHash = new Map<string, StoredKey>();

  constructor(file: ApiKeyFile) {
    const ids = new Set<string>();
    for (const { id, sha256, scopes, expiresAt, previous } of file.keys) {
      if (ids.has(id)) throw new RangeError(`two API keys have the id ${id}`);
      ids.add(id);
      const principal = { id, scopes: scopes.map((text) => parseScope(text)).filter((scope) => scope !== undefined) };
      this.#add(principal, sha256, expiresAt);
      if (previous !== undefined) this.#add(principal, previous.sha256, previous.expiresAt);
    }
  }

  #add(principal: Principal, sha256: string, expiresAt: string | undefined): void {
    if (this.#byHash.has(sha256)) throw new RangeError(`the API key ${principal.id} is there twice`);
    const expiresAtMs = expiresAt === undefined ? Number.POSITIVE_INFINITY : Date.parse(expiresAt);
    this.#byHash.set(sha256, { hash: Buffer.from(sha256, "hex"), principal, expiresAtMs });
  }

  /** Keys that have expired at this time, or will have. */
  expiredAt(timeMs: number): number {
    return [...this.#byHash.values()].filter(({ expiresAtMs }) => expiresAtMs <= timeMs).length;
  }

  get size(): number {
    return this.#byHash.size;
  }

  // Looking up a hash leaks nothing about the key through timing; the bytes are still compared in
  // constant time.
  find(key: string): Principal | undefined {
    if (key.length < MIN_KEY_LENGTH || !KEY_SHAPE.test(key)) return undefined;
    const hash = createHash("sha256").update(key).digest();
    const entry = this.#byHash.get(hash.toString("hex"));
    if (entry === undefined || !timingSafeEqual(entry.hash, hash)) return undefined;
    return entry.expiresAtMs > Date.now() ? entry.principal : undefined;
  }
}

// What a file of API keys has to look like.

const scopeText = z.string().refine((text) => parseScope(text) !== undefined, {
  error: `must be one of ${actions.join(", ")}, a colon and a prefix, such as "write:orders/"`,
});
const keyHash = z.string().regex(/^[0-9a-f]{64}$/, { error: "must be the SHA-256 of the key in 64 lower-case hexadecimal digits" });
const instant = z.iso.datetime({ offset: true, error: 'must be a time such as "2027-01-31T00:00:00Z"' });
/**
 * `previous` is the key that the entry had before: while callers change over, both are the same
 * caller, whose name stays.
 */
export const apiKeyFile = z.strictObject({
  keys: z.array(
    z.strictObject({
      id: z.string().regex(/^[A-Za-z0-9._-]{1,64}$/, { error: "must be 1 to 64 letters, digits, dots, dashes or underscores" }),
      sha256: keyHash,
      scopes: z.array(scopeText).min(1, { error: "must hold at least one scope" }),
      expiresAt: instant.optional(),
      previous: z.strictObject({ sha256: keyHash, expiresAt: instant }).optional(),
    }),
  ),
});

// JSON Web Tokens, the second kind of credential. Audience and issuer are fixed by configuration and
// the algorithms by the kind of key, never read from the token. A token without an expiry is
// refused. Shared secrets and public keys exclude each other: a public key would otherwise pass as
// the secret.

export interface JwtConfig {
  readonly secret?: string | undefined;
  readonly jwksUrl?: string | undefined;
  /** Public keys that were fetched longer ago do not count. */
  readonly jwksMaxAgeMs?: number | undefined;
  readonly audience: string;
  readonly issuer?: string | undefined;
}

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

  async check(token: string): Promise<Principal | Problem> {
    const hash = createHash("sha256").update(token).digest("base64");
    const known = this.#remembered.get(hash);
    // Read before the token is verified: keys that come meanwhile may lack the one it was signed
    // with.
    const { edition } = this.#keys;
    if (known !== undefined && known.edition === edition && known.expiresAt > Date.now()) return known.principal;
    let payload: JWTPayload;
    try {
      payload = await this.#keys.verify(token);
    } catch (error) {
      this.#remembered.delete(hash);
      if (isAboutTheToken(error)) return invalid(reasonOf(error));
      return notApplied("unavailable", "The keys that JWTs are checked with could not be fetched.");
    }
    const principal = principalOf(payload);
    if (principal === undefined) return invalid("its scope or sub claim is missing or not understood");
    if (edition !== undefined) this.#remember(hash, { principal, edition, expiresAt: (payload.exp ?? 0) * 1_000 });
    return principal;
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

function invalid(reason: string): Problem {
  return unauthenticated(`The JWT is not valid here: ${reason}.`);
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

interface JwtKeys {
  verify(token: string): Promise<JWTPayload>;
  /**
   * Changes whenever the keys do: what was verified under another edition has to be verified again.
   * Undefined while there are no keys that are young enough.
   */
  readonly edition: object | undefined;
  /** Fetches the keys now. Fails when that fails; the last keys then keep their age. */
  reload(): Promise<void>;
}

function sharedSecret(secret: string, options: JWTVerifyOptions): JwtKeys {
  const key = new TextEncoder().encode(secret);
  return {
    verify: async (token) => (await jwtVerify(token, key, options)).payload,
    edition: key,
    reload: async () => undefined,
  };
}

const PAUSE_BETWEEN_FETCHES_MS = 1_000;

function publicKeys(url: string, maxAgeMs: number, options: JWTVerifyOptions): JwtKeys {
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
