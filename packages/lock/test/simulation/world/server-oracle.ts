// What the servers really did, read from the scripts that they executed: which node granted which
// token to whom, which holders were removed by force, and which memories were admitted. Clients
// cannot know this.
import type { Executed } from "../server/sim-server.js";

export interface ServerOracleSettings {
  readonly onRemoved: (resource: string) => void;
  readonly onAdmitted: (server: string) => void;
}

export class ServerOracle {
  readonly #settings: ServerOracleSettings;
  readonly #granted = new Map<string, Map<number, string>>();

  constructor(settings: ServerOracleSettings) {
    this.#settings = settings;
  }

  executed(executed: Executed): void {
    const { name, reply, server } = executed;
    if (name === "grant" || name === "claim") this.#grants(executed);
    if (name === "raise") this.#removals(executed);
    if (name === "admit" && Array.isArray(reply) && reply[0] === "1") this.#settings.onAdmitted(server.name);
  }

  /** The owner to whom this node granted the token last. It begins with the name of the process. */
  granteeOf(server: string, resource: string, token: number): string | undefined {
    return this.#granted.get(`${server}/${resource}`)?.get(token);
  }

  #grants({ name, server, keys, args, reply }: Executed): void {
    const tokens = typeof reply === "number" ? [reply] : Array.isArray(reply) ? reply.slice(1) : [];
    const perRequest = (keys.length - 1) / tokens.length;
    for (const [i, token] of tokens.entries()) {
      if (typeof token !== "number") continue;
      const locks = keys.slice(1 + i * perRequest, 1 + (i + 1) * perRequest).filter((key) => key.includes(":lock:"));
      for (const lock of locks) this.#grant(`${server.name}/${resourceOf(lock)}`, token, args[name === "claim" ? 3 + 3 * i : 2 + i] ?? "");
    }
  }

  #grant(place: string, token: number, value: string): void {
    const there = this.#granted.get(place);
    if (there === undefined) this.#granted.set(place, new Map([[token, value]]));
    else there.set(token, value);
  }

  #removals({ keys, reply }: Executed): void {
    const replies = Array.isArray(reply) ? reply.slice(1) : [];
    for (const [i, raised] of replies.entries())
      if (Array.isArray(raised) && raised[1] !== "") this.#settings.onRemoved(resourceOf(keys[1 + 2 * i] ?? ""));
  }
}

function resourceOf(lockKey: string): string {
  return lockKey.slice(lockKey.indexOf("lock:") + "lock:".length);
}
