// What a client has at hand for its work. Plain wiring, made once by the client program.
import type { GatewayClient } from "@palisade/gateway/client";
import type { Chance } from "../../harness/chance.js";
import type { Door } from "./door.js";
import type { GuardedTable } from "./guarded-table.js";
import type { Leases } from "./leases.js";
import type { Recorder } from "./recorder.js";
import type { Mode } from "./words.js";

export interface Trade {
  readonly mode: Mode;
  readonly chance: Chance;
  readonly leases: Leases;
  readonly recorder: Recorder;
  /** A gateway for the next call. */
  readonly gateway: () => GatewayClient;
  readonly typed: Door;
  readonly raw: Door;
  /** Those who have a table of their own. */
  readonly table: GuardedTable | undefined;
  /** Stops this process by a real signal, and returns when it has been continued. */
  readonly sleepFor: (ms: number) => Promise<void>;
}
