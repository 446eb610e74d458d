// The processes in which a library runs, and the nodes that they ask.
import { fileURLToPath } from "node:url";
import { AskedChild, type RedisFleet } from "@palisade/testkit";
import type { Processes } from "../measure/cpu.js";
import type { Ask } from "./client.js";
import { byKey } from "./configurations.js";
import { type Settings, usualSettings } from "./library.js";

export type LockProcess = AskedChild<Ask>;

const program = fileURLToPath(new URL("client.js", import.meta.url));

export function startLockProcess(): LockProcess {
  return new AskedChild<Ask>(program, { name: "a process with a lock library" });
}

export interface Opening {
  readonly urls: readonly string[];
  /** Of the checkout that the entrant "before" comes from. */
  readonly beside: string | undefined;
  readonly settings?: Partial<Settings>;
}

/** Connects a library in each of the processes. */
export async function openIn(processes: readonly LockProcess[], key: string, opening: Opening): Promise<void> {
  const from = key === "before" && opening.beside !== undefined ? { from: opening.beside } : {};
  const settings = { ...usualSettings, ...byKey(key).settings, ...opening.settings, ...from };
  await Promise.all(processes.map((one) => one.ask({ kind: "open", key, urls: opening.urls, settings })));
}

/** "before" takes part where another checkout was given. */
export function withBefore(keys: readonly string[], beside: string | undefined): readonly string[] {
  return beside === undefined ? keys : keys.flatMap((key) => (key === "palisade" ? ["palisade", "before"] : [key]));
}

export function processesOf(clients: readonly LockProcess[], fleet: RedisFleet): Processes {
  return {
    client: () => clients.map(({ pid }) => pid),
    redis: () => fleet.nodes.flatMap(({ pid }) => (pid === undefined ? [] : [pid])),
  };
}
