// What the lock needs of one connection to one server: ioredis.ts makes it with ioredis, the
// simulation without a network.
import type { NodeSource } from "../options/node-source.js";
import type { Clock } from "../platform/clock.js";
import type { EncodedCall } from "./batch.js";

export interface ConnectSettings {
  readonly connectTimeoutMs: number;
  /** Shown by CLIENT LIST. */
  readonly connectionName: string;
  readonly clock: Clock;
}

/**
 * A connection that is made again whenever it is lost, until it is disconnected. What was on its
 * way when it was lost rejects, and is never sent again; while there is no connection, everything
 * rejects. Calls are executed in the order in which they were made.
 */
export interface Link {
  readonly isCluster: boolean;
  /** The server accepted the connection. */
  on(event: "connect", told: () => void): unknown;
  /** It can be asked. */
  on(event: "ready", told: () => void): unknown;
  /** The connection is gone, or was not made. */
  on(event: "close", told: () => void): unknown;
  /** Why; `close` follows. */
  on(event: "error", told: (error: unknown) => void): unknown;
  on(event: "message", told: (channel: string, message: string) => void): unknown;
  /** Begins. Rejects if the first connection is not made. */
  connect(): Promise<unknown>;
  /**
   * Executes a script that the server knows, with the admission record as the last word, if one is
   * given.
   */
  send(sha: string, call: EncodedCall, record: string | undefined): Promise<unknown>;
  eval(source: string, keyCount: number, ...text: string[]): Promise<unknown>;
  call(command: string, ...args: string[]): Promise<unknown>;
  subscribe(...channels: string[]): Promise<unknown>;
  unsubscribe(...channels: string[]): Promise<unknown>;
  /** Ends the present connection; a new one is made. What was not sent yet never arrives. */
  breakOff(): void;
  /** For good. */
  disconnect(): void;
}

export type OpenLink = (source: NodeSource, settings: ConnectSettings) => Link;
