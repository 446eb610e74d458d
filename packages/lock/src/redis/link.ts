// What the lock needs of one connection to one server, however it is made: connect.ts makes it with ioredis, a simulation makes it out of numbers. Nothing here
// decides when to ask or what an answer means.

import type { NodeSource } from "../options/node-source.js";
import type { Clock } from "../platform/clock.js";
import type { EncodedCall } from "./encoded-call.js";

export interface ConnectSettings {
  readonly connectTimeoutMs: number;
  /** Shown by CLIENT LIST. */
  readonly connectionName: string;
  readonly clock: Clock;
}

/**
 * A connection that is made again whenever it is lost, until it is disconnected. What was on its way when it was lost rejects, and is never sent again; while there
 * is none, everything rejects. Calls are executed in the order in which they were made.
 */
export interface Link {
  readonly isCluster: boolean;
  /** A server accepted us. */
  on(event: "connect", told: () => void): unknown;
  /** It can be asked. */
  on(event: "ready", told: () => void): unknown;
  /** It is gone, or was not made. */
  on(event: "close", told: () => void): unknown;
  /** Why; what follows from it, `close` tells. */
  on(event: "error", told: (error: unknown) => void): unknown;
  on(event: "message", told: (channel: string, news: string) => void): unknown;
  /** Begins. Rejects if the first connection is not made. */
  connect(): Promise<unknown>;
  /** Has a script executed that the server knows; with the belief as its last word, if there is one. */
  post(sha: string, call: EncodedCall, belief: string | undefined): Promise<unknown>;
  eval(source: string, keyCount: number, ...text: string[]): Promise<unknown>;
  call(command: string, ...args: string[]): Promise<unknown>;
  subscribe(...channels: string[]): Promise<unknown>;
  unsubscribe(...channels: string[]): Promise<unknown>;
  /** Gives up the present connection; a new one is made. What was not sent yet never arrives. */
  breakOff(): void;
  /** For good. */
  disconnect(): void;
}

export type OpenLink = (source: NodeSource, settings: ConnectSettings) => Link;
