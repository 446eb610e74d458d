// JSON Web Tokens, the second kind of credential. Accepted algorithms, audience and issuer are
// fixed by configuration, never read from the token. A token without an expiry is refused. Shared
// secrets and public keys exclude each other: a public key would otherwise pass as the secret.
import { createHash } from "node:crypto";
import { createRemoteJWKSet, errors, type JWTPayload, type JWTVerifyOptions, jwtVerify } from "jose";
import { characterFault } from "./resource-name.js";
import { type Principal, parseScope } from "./scopes.js";

export interface JwtConfig {
  readonly secret?: string | undefined;
  readonly jwksUrl?: string | undefined;
  readonly audience: string;
  readonly issuer?: string | undefined;
  readonly algorithms: readonly string[];
}

export type JwtAnswer =
  | { readonly kind: "principal"; readonly principal: Principal }
  | { readonly kind: "refused"; readonly reason: string }
  /** The keys could not be fetched: nothing is known about the token. */
  | { readonly kind: "keys_unavailable" };

const CLOCK_TOLERANCE_SECONDS = 5;
const MAX_REMEMBERED_TOKENS = 1_000;

export class JwtVerifier {
  readonly #verify: (token: string) => Promise<JWTPayload>;
  // Verified tokens by their hash, oldest first: a signature is checked once per token, not once
  // per request.
  readonly #remembered = new Map<string, { readonly principal: Principal; readonly expiresAt: number }>();

  constructor(config: JwtConfig) {
    const options: JWTVerifyOptions = {
      algorithms: [...config.algorithms],
      audience: config.audience,
      clockTolerance: CLOCK_TOLERANCE_SECONDS,
      requiredClaims: ["exp", "sub"],
      ...(config.issuer === undefined ? {} : { issuer: config.issuer }),
    };
    if (config.jwksUrl !== undefined) {
      const keys = createRemoteJWKSet(new URL(config.jwksUrl), { timeoutDuration: 3_000, cooldownDuration: 5_000 });
      this.#verify = async (token) => (await jwtVerify(token, keys, options)).payload;
    } else {
      const secret = new TextEncoder().encode(config.secret);
      this.#verify = async (token) => (await jwtVerify(token, secret, options)).payload;
    }
  }

  async check(token: string): Promise<JwtAnswer> {
    const hash = createHash("sha256").update(token).digest("base64");
    const known = this.#remembered.get(hash);
    if (known !== undefined && known.expiresAt > Date.now()) return { kind: "principal", principal: known.principal };
    let payload: JWTPayload;
    try {
      payload = await this.#verify(token);
    } catch (error) {
      this.#remembered.delete(hash);
      return isAboutTheToken(error) ? { kind: "refused", reason: reasonOf(error) } : { kind: "keys_unavailable" };
    }
    const principal = principalOf(payload);
    if (principal === undefined) return { kind: "refused", reason: "its scope or sub claim is missing or not understood" };
    this.#remember(hash, principal, (payload.exp ?? 0) * 1_000);
    return { kind: "principal", principal };
  }

  #remember(hash: string, principal: Principal, expiresAt: number): void {
    this.#remembered.set(hash, { principal, expiresAt });
    if (this.#remembered.size <= MAX_REMEMBERED_TOKENS) return;
    const [oldest] = this.#remembered.keys();
    if (oldest !== undefined) this.#remembered.delete(oldest);
  }
}

/**
 * `scope` is a list separated by spaces (RFC 8693), each item like `write:orders/`, with the prefix
 * percent-encoded where needed.
 */
function principalOf(payload: JWTPayload): Principal | undefined {
  if (typeof payload.scope !== "string" || !isName(payload.sub)) return undefined;
  const scopes = [];
  for (const item of payload.scope.split(" ")) {
    const scope = parseScope(decodeLenient(item));
    // Scopes of other services may stand beside these; they grant nothing here.
    if (scope !== undefined) scopes.push(scope);
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
