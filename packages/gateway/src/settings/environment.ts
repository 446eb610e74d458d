// Environment variables to settings. An empty variable counts as absent. A misspelled PALISADE_
// name is refused, because the intended setting would silently keep its default.
import { GatewayConfigError, resolveSettings } from "./config.js";
import { nearest } from "./setting.js";
import type { Settings } from "./setting-values.js";
import { settings } from "./settings.js";

export interface EnvironmentSettings {
  readonly settings: Settings;
  /** Names that begin with PALISADE_ and mean nothing here. */
  readonly unknownNames: readonly string[];
}

export function readEnvironment(env: Readonly<Record<string, string | undefined>>): EnvironmentSettings {
  const config: Record<string, unknown> = {};
  for (const [key, setting] of Object.entries(settings)) {
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

const knownNames = new Set(Object.values(settings).map((setting) => setting.env));
