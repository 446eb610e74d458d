// Which credentials a gateway accepts, from its settings: keys from a file or inline, JWTs, or none
// on a loopback address.
import { readFileSync } from "node:fs";
import type { ReadinessCheck } from "../fenced-store.js";
import { type ApiKeyFile, ApiKeyring, type Authenticator, apiKeyFile, credentialAuthenticator, openAuthenticator } from "../http/auth.js";
import { JwtVerifier } from "../http/jwt.js";
import { firstIssue } from "../http/schemas.js";
import { GatewayConfigError, hasCredentials, hasJwt, type Naming } from "./config.js";
import type { Settings } from "./settings.js";

export interface Credentials {
  readonly authenticator: Authenticator;
  /** No credential is needed. */
  readonly isOpen: boolean;
  /** Which credentials are accepted, for the log and for /ready. */
  readonly summary: string;
  readonly readiness: ReadinessCheck;
}

export function loadCredentials(settings: Settings, naming: Naming): Credentials {
  if (!hasCredentials(settings)) {
    const summary = "none: every caller on this machine may do everything";
    return {
      authenticator: openAuthenticator,
      isOpen: true,
      summary,
      readiness: { name: "credentials", status: "warning", detail: summary },
    };
  }
  const keyring = loadKeyring(settings, naming);
  const jwt = hasJwt(settings) ? new JwtVerifier(jwtConfigOf(settings)) : undefined;
  if (keyring.size === 0 && jwt === undefined)
    throw new GatewayConfigError([`${naming("apiKeysFile")} holds no key, so every call would be refused.`]);
  const parts = [keyring.size === 0 ? undefined : `${keyring.size} API keys`, jwt === undefined ? undefined : "JWT"];
  const summary = parts.filter((part) => part !== undefined).join(" and ");
  const authenticator = credentialAuthenticator(keyring, jwt);
  return { authenticator, isOpen: false, summary, readiness: { name: "credentials", status: "ok", detail: summary } };
}

function loadKeyring(settings: Settings, naming: Naming): ApiKeyring {
  const { apiKeysFile, apiKeys } = settings;
  const source = naming(apiKeysFile === undefined ? "apiKeys" : "apiKeysFile");
  const content = apiKeysFile === undefined ? { keys: apiKeys ?? [] } : readKeyFile(apiKeysFile, source);
  try {
    return new ApiKeyring(content);
  } catch (error) {
    throw new GatewayConfigError([`${source} cannot be used: ${error instanceof Error ? error.message : String(error)}.`]);
  }
}

function readKeyFile(path: string, source: string): ApiKeyFile {
  const refuse = (reason: string): GatewayConfigError => new GatewayConfigError([`${source} names ${path}, which ${reason}.`]);
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw refuse(`cannot be read (${(error as NodeJS.ErrnoException).code ?? "unknown"})`);
  }
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch {
    throw refuse("is not JSON");
  }
  const parsed = apiKeyFile.safeParse(content);
  if (!parsed.success) throw refuse(`is not a list of keys: ${firstIssue(parsed.error)}`);
  return parsed.data;
}

const sharedDefault = ["HS256"];
const publicKeyDefault = ["RS256", "ES256", "EdDSA"];

function jwtConfigOf(settings: Settings): ConstructorParameters<typeof JwtVerifier>[0] {
  const { jwtSecret, jwtJwksUrl, jwtAudience, jwtIssuer, jwtAlgorithms } = settings;
  return {
    secret: jwtSecret,
    jwksUrl: jwtJwksUrl,
    audience: jwtAudience ?? "",
    issuer: jwtIssuer,
    algorithms: jwtAlgorithms ?? (jwtSecret === undefined ? publicKeyDefault : sharedDefault),
  };
}
