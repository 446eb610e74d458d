// What createGateway accepts, and whether it makes sense. Reads no file and no network: whether a
// key file exists or a database answers is found out at start.
import { databaseUrlsOf } from "../store/database-urls.js";
import { storeLimits } from "../store/store-limits.js";
import { nearest, type Setting } from "./setting.js";
import { withoutFleet } from "./setting-kinds.js";
import type { Settings } from "./setting-values.js";
import { settings } from "./settings.js";

/** What createGateway takes: only `databaseUrl` must be there. */
export type GatewayConfig = { readonly [K in keyof Settings]?: Settings[K] | undefined } & { readonly databaseUrl: string };

/** The configuration cannot work. Each problem is one sentence that names the setting. */
export class GatewayConfigError extends Error {
  override readonly name = "GatewayConfigError";
  /** Tells it from other errors. */
  readonly code = "GATEWAY_CONFIG_INVALID";
  /** One sentence per setting that is wrong. */
  readonly problems: readonly string[];
  constructor(problems: readonly string[]) {
    super(problems.join("\n"));
    this.problems = problems;
  }
}

/**
 * The name of a setting where the reader of the message can change it: DATABASE_URL or databaseUrl.
 */
export type Naming = (setting: keyof Settings) => string;

/** Throws GatewayConfigError with every problem at once. */
export function resolveSettings(config: Readonly<Record<string, unknown>> | undefined, naming: Naming): Settings {
  if (typeof config !== "object" || config === null)
    throw new GatewayConfigError(["createGateway needs an object of settings, with databaseUrl."]);
  const problems: string[] = [];
  const resolved: Record<string, unknown> = {};
  for (const key of Object.keys(config)) {
    const meant = key in settings ? undefined : nearest(key, Object.keys(settings));
    if (!(key in settings))
      problems.push(`${key} is not a setting of the gateway${meant === undefined ? "." : `; did you mean ${meant}?`}`);
  }
  for (const [key, setting] of Object.entries(settings)) {
    const given = config[key];
    const value = given === undefined ? setting.fallback : given;
    if (given !== undefined && !setting.schema.safeParse(given).success)
      problems.push(`${naming(key as keyof Settings)} ${setting.fault?.(given) ?? `must be ${setting.mustBe}${shown(setting, given)}`}.`);
    resolved[key] = value;
  }
  if (config.databaseUrl === undefined) problems.push(`${naming("databaseUrl")} is missing: it must be ${settings.databaseUrl.mustBe}.`);
  const complete = resolved as unknown as Settings;
  if (problems.length === 0) problems.push(...contradictions(complete, naming));
  if (problems.length > 0) throw new GatewayConfigError(problems);
  return complete;
}

// Some values contain passwords or keys; those are never shown.
function shown(setting: Setting, given: unknown): string {
  if (setting.secret === true || !(typeof given === "string" || typeof given === "number")) return "";
  return `, not ${JSON.stringify(given)}`;
}

export function hasCredentials(settings: Settings): boolean {
  return settings.apiKeysFile !== undefined || settings.apiKeys !== undefined || hasJwt(settings);
}

export function hasJwt(settings: Settings): boolean {
  return settings.jwtSecret !== undefined || settings.jwtJwksUrl !== undefined;
}

/** Default: closed where there is a lock to ask, otherwise off. */
export function verifyMode(settings: Settings): "off" | "open" | "closed" {
  return settings.verify ?? (settings.redisUrls === undefined ? "off" : "closed");
}

function contradictions(settings: Settings, naming: Naming): string[] {
  const problems: string[] = [];
  const refuse = (sentence: string): void => void problems.push(sentence);
  if (!hasCredentials(settings) && !isLoopback(settings.host)) {
    refuse(
      `${naming("host")} is ${settings.host}, but without ${naming("apiKeysFile")}, ${naming("apiKeys")} or a JWT setting the gateway serves only loopback addresses such as 127.0.0.1.`,
    );
  }
  if (settings.apiKeysFile !== undefined && settings.apiKeys !== undefined)
    refuse(`${naming("apiKeysFile")} and ${naming("apiKeys")} cannot both be set.`);
  if (settings.verify !== undefined && settings.verify !== "off" && settings.redisUrls === undefined) {
    refuse(`${naming("verify")} is ${settings.verify}, which needs ${naming("redisUrls")}.`);
  }
  const redisUrls = (settings.redisUrls ?? []).map((text) => ({ text, url: withoutFleet(text) }));
  const named = redisUrls.filter(({ text, url }) => text !== url).length;
  if (named > 0 && named < redisUrls.length)
    refuse(`${naming("redisUrls")} gives the name of a fleet to some nodes and not to others: west=redis://… for all, or for none.`);
  const twice = repeated(redisUrls.flatMap(({ url }) => addressOf(url)));
  if (twice !== undefined)
    refuse(`${naming("redisUrls")} names ${twice} twice: each node is a Redis master of its own, and one server must not vote twice.`);
  const host = repeated(databaseUrlsOf(settings.databaseUrl).flatMap((url) => addressOf(url, "5432")));
  if (host !== undefined) refuse(`${naming("databaseUrl")} names ${host} twice.`);
  if (settings.port !== 0 && settings.port === settings.adminPort)
    refuse(`${naming("port")} and ${naming("adminPort")} are both ${settings.port}.`);
  if (settings.bodyBudgetBytes < settings.bodyLimitBytes)
    refuse(`${naming("bodyBudgetBytes")} must be at least ${naming("bodyLimitBytes")}.`);
  const { lockWaitMs, statementTimeoutMs } = storeLimits({ lockWaitMs: settings.lockWaitMs, writeTimeoutMs: settings.writeTimeoutMs });
  if (lockWaitMs >= statementTimeoutMs) {
    const limit = `${statementTimeoutMs} ms, four fifths of ${naming("writeTimeoutMs")}`;
    refuse(`${naming("lockWaitMs")} is ${lockWaitMs} and must be below ${limit}: a write that waits longer is ended before it hears 409.`);
  }
  problems.push(...callContradictions(settings, naming), ...jwtContradictions(settings, naming));
  return problems;
}

/** Host and port, which may be shown; user and password may not. */
function addressOf(url: string, usualPort = "6379"): readonly string[] {
  if (!URL.canParse(url)) return [];
  const { hostname, port } = new URL(url);
  return [`${hostname.toLowerCase()}:${port === "" ? usualPort : port}`];
}

function repeated(values: readonly string[]): string | undefined {
  return values.find((value, index) => values.indexOf(value) !== index);
}

function callContradictions({ callFunctions, callDatabaseUrl }: Settings, naming: Naming): string[] {
  if ((callFunctions === undefined) === (callDatabaseUrl === undefined)) return [];
  const [given, missing] =
    callFunctions === undefined ? (["callDatabaseUrl", "callFunctions"] as const) : (["callFunctions", "callDatabaseUrl"] as const);
  return [`${naming(given)} needs ${naming(missing)}: functions are called under a role of their own.`];
}

function jwtContradictions(settings: Settings, naming: Naming): string[] {
  const { jwtSecret, jwtJwksUrl, jwtJwksMaxAgeMs, jwtAudience, jwtIssuer, jwtAlgorithms } = settings;
  if (jwtJwksMaxAgeMs !== undefined && jwtJwksUrl === undefined) return [`${naming("jwtJwksMaxAgeMs")} needs ${naming("jwtJwksUrl")}.`];
  if (!hasJwt(settings)) {
    const orphans = [
      jwtAudience === undefined ? undefined : naming("jwtAudience"),
      jwtIssuer === undefined ? undefined : naming("jwtIssuer"),
      jwtAlgorithms === undefined ? undefined : naming("jwtAlgorithms"),
    ].filter((name) => name !== undefined);
    return orphans.map((name) => `${name} needs ${naming("jwtSecret")} or ${naming("jwtJwksUrl")}.`);
  }
  const problems: string[] = [];
  if (jwtSecret !== undefined && jwtJwksUrl !== undefined)
    problems.push(`${naming("jwtSecret")} and ${naming("jwtJwksUrl")} cannot both be set.`);
  if (jwtAudience === undefined)
    problems.push(`${naming("jwtAudience")} is missing: without it a token made for another service would pass here.`);
  const shared = jwtSecret !== undefined;
  for (const algorithm of jwtAlgorithms ?? []) {
    if (algorithm.startsWith("HS") !== shared) {
      problems.push(
        `${naming("jwtAlgorithms")} names ${algorithm}, which does not go with ${naming(shared ? "jwtSecret" : "jwtJwksUrl")}.`,
      );
    }
  }
  return problems;
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(?:\.\d{1,3}){3}$/.test(host);
}
