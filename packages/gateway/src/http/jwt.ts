// JSON Web Tokens, the second kind of credential. Accepted algorithms, audience and issuer are
// fixed by configuration, never read from the token. A token without an expiry is refused. Shared
// secrets and public keys exclude each other: a public key would otherwise pass as the secret.
import { createHash } from "node:crypto";
import { errors, type JWTPayload, type JWTVerifyOptions } from "jose";
import { type JwtKeys, publicKeys, sharedSecret } from "./jwt-keys.js";
import { characterFault } from "./resource-name.js";
import { type Principal, parseScope } from "./scopes.js";

interface JwtConfig {
  readonly secret?: string | undefined;
  readonly jwksUrl?: string | undefined;
  /** Public keys that were fetched longer ago do not count. */
  readonly jwksMaxAgeMs?: number | undefined;
  readonly audience: string;
  readonly issuer?: string | undefined;
  readonly algorithms: readonly string[];
}

type JwtAnswer =
  | { readonly kind: "principal"; readonly principal: Principal }
  | { readonly kind: "refused"; readonly reason: string }
  /** The keys could not be fetched: nothing is known about the token. */
  | { readonly kind: "keys_unavailable" };

const CLOCK_TOLERANCE_SECONDS = 5;
const DEFAULT_JWKS_MAX_AGE_MS = 300_000;
const MAX_REMEMBERED_TOKENS = 1_000;

export class JwtVerifier {
  readonly #keys: JwtKeys;
  // Verified tokens by their hash, oldest first: a signature is checked once per token, not once
  // per request.
  readonly #remembered = new Map<string, Remembered>();

  constructor(config: JwtConfig) {
    const options: JWTVerifyOptions = {
      algorithms: [...config.algorithms],
      audience: config.audience,
      clockTolerance: CLOCK_TOLERANCE_SECONDS,
      requiredClaims: ["exp", "sub"],
      ...(config.issuer === undefined ? {} : { issuer: config.issuer }),
    };
    this.#keys =
      config.jwksUrl === undefined
        ? sharedSecret(config.secret ?? "", options)
        : publicKeys(config.jwksUrl, config.jwksMaxAgeMs ?? DEFAULT_JWKS_MAX_AGE_MS, options);
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
