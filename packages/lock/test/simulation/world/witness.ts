// Sees what the servers really did, for the questions that no client can answer: whether a node granted what a ballot says it granted, who was removed by force, and which
// memories are believed. Judges nothing.
import type { Watcher } from "../server/script-call.js";

export interface WitnessSettings {
  readonly onRemoved: (resource: string) => void;
  readonly onAdmitted: (server: string) => void;
}

export class Witness implements Watcher {
  readonly #settings: WitnessSettings;
  readonly #granted = new Map<string, Map<number, string>>();

  constructor(settings: WitnessSettings) {
    this.#settings = settings;
  }

  granted(server: string, lockKey: string, { value, token }: { readonly value: string; readonly token: number }): void {
    const place = `${server}/${resourceOf(lockKey)}`;
    const there = this.#granted.get(place);
    if (there === undefined) this.#granted.set(place, new Map([[token, value]]));
    else there.set(token, value);
  }

  removed(_: string, lockKey: string): void {
    this.#settings.onRemoved(resourceOf(lockKey));
  }

  admitted(server: string): void {
    this.#settings.onAdmitted(server);
  }

  /** To whom this node granted the token last: the owner's secret, which begins with the name of its process. */
  granteeOf(server: string, resource: string, token: number): string | undefined {
    return this.#granted.get(`${server}/${resource}`)?.get(token);
  }
}

function resourceOf(lockKey: string): string {
  return lockKey.slice(lockKey.indexOf("lock:") + "lock:".length);
}
