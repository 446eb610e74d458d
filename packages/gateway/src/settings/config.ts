// What createGateway and the environment accept, and whether it makes sense. Reads no file and no
// network: whether a key file exists or a database answers is found out at start.
import { type Setting, type Settings, settings } from "./settings.js";

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

const table: readonly (readonly [string, Setting])[] = Object.entries(settings);

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
  for (const [key, setting] of table) {
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
  const twice = repeated((settings.redisUrls ?? []).flatMap((url) => addressOf(url)));
  if (twice !== undefined)
    refuse(`${naming("redisUrls")} names ${twice} twice: each node is a Redis master of its own, and one server must not vote twice.`);
  if (settings.port !== 0 && settings.port === settings.adminPort)
    refuse(`${naming("port")} and ${naming("adminPort")} are both ${settings.port}.`);
  problems.push(...jwtContradictions(settings, naming));
  return problems;
}

/** Host and port, which may be shown; user and password may not. */
function addressOf(url: string): readonly string[] {
  if (!URL.canParse(url)) return [];
  const { hostname, port } = new URL(url);
  return [`${hostname.toLowerCase()}:${port === "" ? "6379" : port}`];
}

function repeated(values: readonly string[]): string | undefined {
  return values.find((value, index) => values.indexOf(value) !== index);
}

function jwtContradictions(settings: Settings, naming: Naming): string[] {
  const { jwtSecret, jwtJwksUrl, jwtAudience, jwtIssuer } = settings;
  if (!hasJwt(settings)) {
    const orphans = [
      jwtAudience === undefined ? undefined : naming("jwtAudience"),
      jwtIssuer === undefined ? undefined : naming("jwtIssuer"),
    ].filter((name) => name !== undefined);
    return orphans.map((name) => `${name} needs ${naming("jwtSecret")} or ${naming("jwtJwksUrl")}.`);
  }
  const problems: string[] = [];
  if (jwtSecret !== undefined && jwtJwksUrl !== undefined)
    problems.push(`${naming("jwtSecret")} and ${naming("jwtJwksUrl")} cannot both be set.`);
  if (jwtAudience === undefined)
    problems.push(`${naming("jwtAudience")} is missing: without it a token made for another service would pass here.`);
  return problems;
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(?:\.\d{1,3}){3}$/.test(host);
}

// Environment variables to settings. An empty variable counts as absent. A misspelled PALISADE_
// name is refused, because the intended setting would silently keep its default.

export interface EnvironmentSettings {
  readonly settings: Settings;
  /** Names that begin with PALISADE_ and mean nothing here. */
  readonly unknownNames: readonly string[];
}

export function readEnvironment(env: Readonly<Record<string, string | undefined>>): EnvironmentSettings {
  const config: Record<string, unknown> = {};
  for (const [key, setting] of table) {
    const text = env[setting.env]?.trim();
    if (text !== undefined && text !== "") config[key] = setting.read === undefined ? text : setting.read(text);
  }
  const unknownNames = Object.keys(env).filter((name) => name.startsWith("PALISADE_") && !knownNames.has(name));
  const misspelled = unknownNames.flatMap((name) => {
    const meant = nearest(name, knownNames);
    return meant === undefined ? [] : [`${name} is not a setting; did you mean ${meant}?`];
  });
  if (misspelled.length > 0) throw new GatewayConfigError(misspelled);
  return { settings: resolveSettings(config, (key) => settings[key].env), unknownNames };
}

const knownNames = new Set(table.map(([, { env }]) => env));

/** The name that was meant, where one of these is misspelt. */
function nearest(name: string, known: Iterable<string>): string | undefined {
  return [...known].find((other) => distance(name, other) <= Math.min(2, name.length / 2));
}

/** Edit distance: how many letters must be inserted, deleted or changed. */
function distance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const changed = (row[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(changed, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
