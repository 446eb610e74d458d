// What the pipeline of one node is given, and how it tells what a node said of itself.
import type { Clock } from "../platform/clock.js";
import type { BatchEncoder, EncodedCall } from "./batch.js";
import type { PendingReleases } from "./pending-releases.js";

/** The connection the calls go into. */
export interface Stream {
  readonly isUp: boolean;
  readonly cause: string;
  send(call: EncodedCall, record: string | undefined): Promise<unknown>;
  teachAgain(): Promise<void>;
  breakOff(cause: string): void;
}

export interface PipelineSettings {
  readonly node: string;
  readonly encoder: BatchEncoder;
  readonly clock: Clock;
  readonly nodeTimeoutMs: number;
  readonly stream: Stream;
  readonly pendingReleases: PendingReleases;
  /** The node's admission record as last heard; undefined if it is not known. */
  readonly record: () => string | undefined;
  /**
   * Called with the record in every reply, late ones included, in the order of the replies. Empty:
   * quarantined.
   */
  readonly onRecord: (record: string) => Vote | undefined;
  /** The generation whose votes count now. */
  readonly votingIn: { readonly generation: string };
}

/** What a node answers that is not admitted; RedisNode makes a ballot of it. */
export interface NotAdmitted {
  readonly kind: "quarantined";
  readonly node: string;
}

/** The incarnation and the generation in which a node answered. */
export interface Vote {
  readonly incarnation: string;
  readonly generation: string;
}
