// Who is calling, from the Authorization header alone, and whether that caller may do what it asks.
// Runs before the body is read. An answer does not say whether a credential was unknown, wrong or
// revoked, and no credential reaches a log or an answer.
import { createHash, timingSafeEqual } from "node:crypto";
import { z } from "zod";
import { Problem } from "./answer.js";
import type { ApiKeyFile } from "./api-keys.js";
import type { JwtVerifier } from "./jwt.js";
import { actions, everything, type Principal, parseScope } from "./names.js";

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
      if (jwt !== undefined && JWT_SHAPE.test(credential)) return checkJwt(jwt, credential);
      return unauthenticated("The credential is not valid here.");
    },
  };
}

async function checkJwt(jwt: JwtVerifier, credential: string): Promise<Principal | Problem> {
  const answer = await jwt.check(credential);
  switch (answer.kind) {
    case "principal":
      return answer.principal;
    case "refused":
      return unauthenticated(`The JWT is not valid here: ${answer.reason}.`);
    case "keys_unavailable":
      return new Problem("unavailable", "The keys that JWTs are checked with could not be fetched.", {
        outcome: "not_applied",
        retryAfterSeconds: 1,
      });
  }
}

const developer: Principal = { id: "anonymous", scopes: everything };
const LOOPBACK_HOST = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?$/i;

const LOOPBACK_ADDRESS = /^(?:(?:::ffff:)?127(?:\.\d{1,3}){3}|::1)$/;

/**
 * For development: every caller on the loopback interface may do everything. The address of the
 * connection decides, because a caller from outside can send any header. A connection that is
 * closed already has no address and is refused: its request may still be executed. A web page on
 * the same machine could be directed here by a name that resolves to 127.0.0.1; the Host header it
 * sends gives that away. A proxy on this machine connects from here for callers who are elsewhere.
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
