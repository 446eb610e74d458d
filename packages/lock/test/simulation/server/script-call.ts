// What a script sees while it runs: its keys and arguments, the server, the moment. The native scripts are written over this, one file for each Lua file.
import type { Memory } from "./memory.js";

/** Told of what scripts do to leases and memories. */
export interface Watcher {
  granted(server: string, lockKey: string, given: { readonly value: string; readonly token: number }): void;
  /** By force. */
  removed(server: string, lockKey: string): void;
  admitted(server: string): void;
}

/** What a script may know and do of its server besides its memory. */
export interface Host {
  readonly runId: string;
  readonly memory: Memory;
  readonly version: string;
  readonly name: string;
  readonly watcher: Watcher | undefined;
  /** Unix milliseconds by its own clock. */
  wallMs(): number;
  /** As INFO has it: whole seconds. */
  uptimeSeconds(): number;
  /** PUBSUB NUMSUB */
  listeners(channel: string): number;
  publish(channel: string, news: string): void;
}

export interface ScriptCall {
  readonly host: Host;
  readonly memory: Memory;
  readonly nowMs: number;
  readonly keys: readonly string[];
  readonly args: readonly string[];
  /** The line that the client puts before the script: how long counters live, and in which life of the server it was loaded; undefined: it asks. */
  readonly retentionMs: number;
  readonly run: string | undefined;
}

export class ScriptError extends Error {}
