// Which credentials a gateway accepts, from its settings: keys from a file or inline, JWTs, or none
// where the settings say so. The file and the public keys of JWTs are read again while the gateway
// runs, so that a key can be changed or withdrawn without a restart.
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import type { ReadinessCheck } from "../fenced-store.js";
import type { ApiKeyFile } from "../http/api-keys.js";
import { ApiKeyring, type Authenticator, apiKeyFile, credentialAuthenticator, JwtVerifier, openAuthenticator } from "../http/auth.js";
import { firstIssue } from "../http/schemas.js";
import { GatewayConfigError, hasJwt, type Naming, type Settings } from "./settings.js";

/** A key file is looked at this often: a mounted secret is replaced without an event. */
const WATCH_INTERVAL_MS = 2_000;
const SOON_MS = 7 * 86_400_000;

const oldApiKeys = "the key file could not be read again, so the API keys from before are in use";
const oldPublicKeys = "the public keys of JWTs could not be fetched again, so those from before count until they are too old";

export class Credentials {
  /** No credential is needed. */
  readonly isOpen: boolean;
  readonly authenticator: Authenticator;
  readonly jwt: JwtVerifier | undefined;
  keyring: ApiKeyring;
  readonly #settings: Settings;
  readonly #naming: Naming;
  /** Which of the two were not usable the last time, and why. */
  readonly #failed = new Map<typeof oldApiKeys | typeof oldPublicKeys, unknown>();
  #isClosed = false;
  /** What was read last of the key file, or why it could not be read. */
  #content: Content | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** `jwksMaxAgeMs`: how long public keys count after they were fetched. */
  constructor(settings: Settings, naming: Naming, jwksMaxAgeMs?: number) {
    const { jwtSecret: secret, jwtJwksUrl: jwksUrl, jwtAudience: audience = "", jwtIssuer: issuer } = settings;
    this.isOpen = settings.apiKeys === "none";
    if (settings.apiKeys === undefined && settings.apiKeysFile === undefined && !hasJwt(settings)) throw noCredentials(naming);
    this.authenticator = this.isOpen ? openAuthenticator : credentialAuthenticator(this);
    this.jwt = hasJwt(settings) ? new JwtVerifier({ secret, jwksUrl, jwksMaxAgeMs, audience, issuer }) : undefined;
    this.#settings = settings;
    this.#naming = naming;
    this.keyring = this.#load();
    // At the start that is a mistake. Later it is how the last key is withdrawn.
    if (this.#refusesAll) throw noKeys(settings, naming);
  }

  get #refusesAll(): boolean {
    return this.keyring.size === 0 && this.jwt === undefined && !this.isOpen;
  }

  /** Which are accepted, for the log and for /ready. */
  get summary(): string {
    if (this.isOpen) return "none: whatever connects from this machine may do everything";
    if (this.#refusesAll) return "no API keys: every call is refused";
    const parts = [this.keyring.size === 0 ? undefined : `${this.keyring.size} API keys`, this.jwt === undefined ? undefined : "JWT"];
    return parts.filter((part) => part !== undefined).join(" and ");
  }

  get readiness(): ReadinessCheck {
    const now = Date.now();
    const expired = this.keyring.expiredAt(now);
    const expiring = this.keyring.expiredAt(now + SOON_MS) - expired;
    const worries = [
      expired === 0 ? undefined : `${expired} API keys have expired`,
      expiring === 0 ? undefined : `${expiring} API keys expire within a week`,
      ...this.#failed.keys(),
    ].filter((worry) => worry !== undefined);
    const status = worries.length === 0 && !this.#refusesAll && !this.isOpen ? "ok" : "warning";
    return { name: "credentials", status, detail: [this.summary, ...worries].join("; ") };
  }

  /**
   * Reads the key file and the public keys again. Of what is not usable it keeps what it has, fails
   * after both, and /ready then says which.
   */
  async reload(): Promise<void> {
    try {
      this.keyring = this.#load();
      this.#failed.delete(oldApiKeys);
    } catch (error) {
      this.#failed.set(oldApiKeys, error);
    }
    await this.#fetchPublicKeys();
    const [cause] = this.#failed.values();
    const reasons = [...this.#failed].map(([what, error]) => `${what}: ${error instanceof Error ? error.message : String(error)}`);
    if (reasons.length > 0) throw new Error(reasons.join("; "), { cause });
  }

  /**
   * Calls `onChange` when the key file has changed, and tries again to fetch public keys that could
   * not be fetched. The file is compared with what was read last, usable or not: a watch on it begins
   * a moment after it was read, and never tells what changed in between.
   */
  watch(onChange: () => void): void {
    const { apiKeysFile, jwtJwksUrl } = this.#settings;
    if ((apiKeysFile === undefined && jwtJwksUrl === undefined) || this.#timer !== undefined) return;
    const look = async (): Promise<void> => {
      if (this.#failed.has(oldPublicKeys)) void this.#fetchPublicKeys();
      const hasChanged = apiKeysFile !== undefined && (await this.#differs(apiKeysFile));
      if (this.#isClosed) return;
      if (hasChanged) onChange();
      this.#timer = setTimeout(look, WATCH_INTERVAL_MS).unref();
    };
    this.#timer = setTimeout(look, WATCH_INTERVAL_MS).unref();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  async #fetchPublicKeys(): Promise<void> {
    try {
      await this.jwt?.reload();
      this.#failed.delete(oldPublicKeys);
    } catch (error) {
      this.#failed.set(oldPublicKeys, error);
    }
  }

  async #differs(apiKeysFile: string): Promise<boolean> {
    const content = await readFile(apiKeysFile, "utf8").then((text): Content => ({ text }), failureOf);
    return content.text !== this.#content?.text || content.code !== this.#content?.code;
  }

  #load(): ApiKeyring {
    const { apiKeysFile } = this.#settings;
    this.#content = apiKeysFile === undefined ? undefined : contentOf(apiKeysFile);
    return loadKeyring(this.#settings, this.#naming, this.#content);
  }
}

function noCredentials(naming: Naming): GatewayConfigError {
  return new GatewayConfigError([
    `No credentials are configured: set ${naming("apiKeysFile")}, ${naming("apiKeys")} or a JWT setting. For development ${naming("apiKeys")} may be none: whatever connects from this machine may then do everything, also a proxy for callers elsewhere.`,
  ]);
}

function noKeys({ apiKeysFile }: Settings, naming: Naming): GatewayConfigError {
  const reason = "holds no key, so every call would be refused";
  if (apiKeysFile !== undefined) return unusable(apiKeysFile, naming("apiKeysFile"), reason);
  return new GatewayConfigError([`${naming("apiKeys")} ${reason}.`]);
}

function unusable(path: string, source: string, reason: string): GatewayConfigError {
  const advice = 'it is a JSON file {"keys":[ENTRY, …]}, and npx @palisade/gateway keygen makes an ENTRY';
  return new GatewayConfigError([`${source} names ${path}, which ${reason}; ${advice}.`]);
}

interface Content {
  readonly text?: string;
  readonly code?: string;
}

function contentOf(path: string): Content {
  try {
    return { text: readFileSync(path, "utf8") };
  } catch (error) {
    return failureOf(error);
  }
}

function failureOf(error: unknown): Content {
  return { code: (error as NodeJS.ErrnoException).code ?? "unknown" };
}

function loadKeyring(settings: Settings, naming: Naming, content: Content | undefined): ApiKeyring {
  const { apiKeysFile = "" } = settings;
  const apiKeys = settings.apiKeys === "none" ? undefined : settings.apiKeys;
  const source = naming(content === undefined ? "apiKeys" : "apiKeysFile");
  const keys = content === undefined ? { keys: apiKeys ?? [] } : keysIn(content, (reason) => unusable(apiKeysFile, source, reason));
  try {
    return new ApiKeyring(keys);
  } catch (error) {
    throw new GatewayConfigError([`${source} cannot be used: ${error instanceof Error ? error.message : String(error)}.`]);
  }
}

function keysIn({ text, code }: Content, refuse: (reason: string) => GatewayConfigError): ApiKeyFile {
  if (text === undefined) throw refuse(`cannot be read (${code})`);
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw refuse("is not JSON");
  }
  const parsed = apiKeyFile.safeParse(json);
  if (!parsed.success) throw refuse(`is not a list of keys: ${firstIssue(parsed.error)}`);
  return parsed.data;
}
