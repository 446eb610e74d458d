// Who is calling, from the Authorization header alone, and whether that caller may do what it asks. Runs before any of the body is read.
// Must not say whether a credential was unknown, wrong or revoked, and must not put it into a log or an answer.
import type { ApiKeyring } from "./api-keys.js";
import type { JwtVerifier } from "./jwt.js";
import { Problem } from "./problem.js";
import { type Action, allows, everything, type Principal } from "./scopes.js";

export interface Authenticator {
  authenticate(authorization: string | undefined, host: string | undefined): Principal | Problem | Promise<Principal | Problem>;
}

const BEARER = /^Bearer +([^ \n]+)$/i;
// Three base64url parts: no API key has dots between such parts, because their alphabet for keys made here has none.
const JWT_SHAPE = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/;

export function credentialAuthenticator(keyring: ApiKeyring, jwt: JwtVerifier | undefined): Authenticator {
  return {
    authenticate(authorization) {
      if (authorization === undefined) return unauthenticated("This gateway wants a credential: Authorization: Bearer <API key or JWT>.");
      const credential = BEARER.exec(authorization)?.[1];
      if (credential === undefined) return unauthenticated("The Authorization header must be sent once, as Bearer and one credential.");
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

/**
 * For development: everybody who reaches the loopback interface may do everything. A page in a browser on the same machine could be pointed here by a name that
 * resolves to 127.0.0.1; the Host header it then sends gives it away.
 */
export const openAuthenticator: Authenticator = {
  authenticate(_authorization, host) {
    if (host === undefined || LOOPBACK_HOST.test(host)) return developer;
    return new Problem("forbidden_scope", "Without API keys this gateway answers only to localhost; the Host header names something else.");
  },
};

export function authorize(principal: Principal, action: Action, resource: string): Problem | undefined {
  if (allows(principal, action, resource)) return undefined;
  return new Problem("forbidden_scope", `The credential ${principal.id} has no ${action} scope that covers this resource.`);
}

function unauthenticated(detail: string): Problem {
  return new Problem("unauthenticated", detail);
}
