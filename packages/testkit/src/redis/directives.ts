// The directives of redis.conf that every node of a fleet is started with, wherever it runs.
import type { Address, RedisServerSpec } from "./provider.js";

/** `at` is where clients find the server; a caller adds where it listens. */
export function directivesOf({ appendfsync, config }: RedisServerSpec, at: Address): Readonly<Record<string, string>> {
  return {
    save: "",
    appendonly: "yes",
    appendfsync,
    // Lets tests look inside (DEBUG SLEEP, DEBUG RELOAD). Clients of a published port do not come
    // from loopback.
    "enable-debug-command": "yes",
    // A cluster tells its clients where they find it, and does not know by itself.
    ...(config["cluster-enabled"] === "yes" ? announce(at) : {}),
    ...config,
  };
}

function announce({ host, port }: Address): Record<string, string> {
  return { "cluster-announce-ip": host, "cluster-announce-port": String(port) };
}
