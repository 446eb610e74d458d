// The events the lock publishes over node:diagnostics_channel, and where tracing is attached. Channel
// names and message shapes are public API. Without a subscriber no event is even built.
import { channel } from "node:diagnostics_channel";
import type { Ballot, LeaseLostReason, LockErrorCode, LossReason } from "./ballot.js";

/**
 * One attempt to acquire, published when every node has answered it or run out of time: also after
 * a success with nodes down.
 */
export interface AttemptEvent {
  /** The resources of the call or lease. */
  readonly resources: readonly string[];
  /** `won`, or why nothing was acquired. */
  readonly outcome: "won" | LossReason;
  /** Present if won. */
  readonly token?: number;
  /** 1, or 2 when the granting nodes did not agree on a token and it had to be sealed. */
  readonly rounds: number;
  /** From the first byte sent until the outcome is known and every node has answered. */
  readonly elapsedMs: number;
  /** Every node's answer to the request for a grant. */
  readonly ballots: readonly Ballot[];
}

/** One request to every node, published when the last has answered it or run out of time. */
export interface RoundEvent {
  /** What the nodes were asked. */
  readonly question: "grant" | "seal" | "extend" | "release" | "inspect" | "raise";
  /** The resources of the call or lease. */
  readonly resources: readonly string[];
  /** What each node answered. */
  readonly ballots: readonly Ballot[];
}

/** One extension of a lease, by `extend` or by automatic renewal. */
export interface RenewalEvent {
  /** The resources of the call or lease. */
  readonly resources: readonly string[];
  /** The token of the lease. */
  readonly token: number;
  /** `renewed`: a quorum holds it on. `lost`: it has ended. `unknown`: too few nodes answered. */
  readonly outcome: "renewed" | "lost" | "unknown";
  /** What is left of the lease afterwards. */
  readonly remainingMs: number;
  /** What each node answered. */
  readonly ballots: readonly Ballot[];
}

/** A lease is close to its end and was not renewed. */
export interface DangerEvent {
  /** The resources of the call or lease. */
  readonly resources: readonly string[];
  /** The token of the lease. */
  readonly token: number;
  /** What is left of the lease, in milliseconds. */
  readonly remainingMs: number;
}

/** A lease ended otherwise than by its release. */
export interface LossEvent {
  /** The resources of the call or lease. */
  readonly resources: readonly string[];
  /** The token of the lease. */
  readonly token: number;
  /** Why it ended. */
  readonly reason: LeaseLostReason;
}

/** A lease ended, for whatever reason: also by its release. */
export interface EndEvent {
  /** What was held. */
  readonly resources: readonly string[];
  /** The token of the lease. */
  readonly token: number;
  /** Why it ended. */
  readonly reason: LeaseLostReason;
  /** For how long it was held, in milliseconds. */
  readonly heldMs: number;
}

/** A call that waits for a lease (acquire, using, campaign) has it, or has failed. */
export interface WaitEvent {
  /** What was waited for. */
  readonly resources: readonly string[];
  /** `won`, or the code of the LockError with which the call failed. */
  readonly outcome: "won" | LockErrorCode;
  /** Present if won. */
  readonly token?: number;
  /** From the call until then, in milliseconds. */
  readonly waitedMs: number;
  /** How many callers of this process wait behind it for the same resources. */
  readonly queueLength: number;
}

/** An operator removed a holder. */
export interface ForceReleaseEvent {
  /** The resource that was freed. */
  readonly resource: string;
  /** What the operator gave as the reason. */
  readonly reason: string;
  /** Every later lease of the resource has a higher token. */
  readonly fence: number;
  /** Labels of the holders that were removed. */
  readonly removed: readonly string[];
}

/** The routine of a campaign threw while it led, or the campaign has ended since the nodes cannot be used. */
export interface CampaignEvent {
  /** What is led. */
  readonly resource: string;
  /** Of the term that has ended so; absent where there was none. */
  readonly token?: number;
  /** What was thrown. */
  readonly error: unknown;
  /** Whether this process stands for election again. */
  readonly goesOn: boolean;
}

/** Why a node was admitted: what says that it gives no token twice. */
export type AdmissionWay =
  /** It kept everything: append-only log, fsync always. */
  | "durable"
  /**
   * Its memory was rebuilt from the floors of enough admitted nodes, after every lease it may have
   * forgotten had run out.
   */
  | "rebuilt"
  /**
   * A new fleet, or too few admitted nodes left to prove the highest token: the floor is 100
   * times the Unix time in milliseconds.
   */
  | "bootstrap";

/** What happened to a node, or to the fleet; published on the channel `palisade:lock:node`. */
export type NodeEvent =
  | { readonly kind: "connected"; readonly node: string; readonly address: string }
  | { readonly kind: "disconnected"; readonly node: string; readonly address: string; readonly cause: string }
  | { readonly kind: "quarantined"; readonly node: string; readonly readyInMs?: number }
  | { readonly kind: "admitted"; readonly node: string; readonly way: AdmissionWay; readonly floor: number }
  /**
   * Nothing can be done for these nodes now; tried again when another node comes back, and every
   * second or so.
   */
  | { readonly kind: "admission_blocked"; readonly nodes: readonly string[]; readonly reason: string }
  | { readonly kind: "fleet_refused"; readonly reason: string }
  /** Other nodes are members of the fleet than those that this process was configured with. */
  | { readonly kind: "members_differ"; readonly generation: number; readonly members: readonly string[]; readonly message: string }
  /** Releases whose outcome is unknown were given up: too many were waiting for the node. */
  | {
      readonly kind: "release_dropped";
      readonly node: string;
      readonly count: number;
      readonly reason: string;
    };

/** The names of the channels, for `diagnostics_channel.subscribe`. */
export const channelNames = {
  attempt: "palisade:lock:attempt",
  round: "palisade:lock:round",
  renewal: "palisade:lock:renewal",
  danger: "palisade:lock:danger",
  loss: "palisade:lock:loss",
  end: "palisade:lock:end",
  wait: "palisade:lock:wait",
  forceRelease: "palisade:lock:force-release",
  campaign: "palisade:lock:campaign",
  node: "palisade:lock:node",
} as const;

interface Publisher<Event> {
  readonly hasSubscribers: boolean;
  publish(event: Event): void;
}

const open = <Event>(name: string): Publisher<Event> => channel(name);

/** Check `hasSubscribers` before building an event. */
export const channels = {
  attempt: open<AttemptEvent>(channelNames.attempt),
  round: open<RoundEvent>(channelNames.round),
  renewal: open<RenewalEvent>(channelNames.renewal),
  danger: open<DangerEvent>(channelNames.danger),
  loss: open<LossEvent>(channelNames.loss),
  end: open<EndEvent>(channelNames.end),
  wait: open<WaitEvent>(channelNames.wait),
  forceRelease: open<ForceReleaseEvent>(channelNames.forceRelease),
  campaign: open<CampaignEvent>(channelNames.campaign),
  /** Connections, quarantine, admission: facts about one node or about the fleet. */
  node: open<NodeEvent>(channelNames.node),
} as const;

export type SpanName = "acquire" | "hold" | "renew" | "release";

export interface SpanSubject {
  readonly resources: readonly string[];
  /** Absent: not known yet. */
  readonly token?: number;
}

export interface SpanEnd {
  readonly outcome: string;
  readonly isFailure: boolean;
  readonly token?: number | undefined;
}

export interface OpenSpan {
  end(how: SpanEnd): void;
}

export interface LockSpans {
  /** Under `parent`, or under what the caller is doing now. Undefined: it is not recorded. */
  begin(name: SpanName, subject: SpanSubject, parent?: OpenSpan): OpenSpan | undefined;
}

/**
 * Until tracing is attached, an operation costs one look at this field, and nothing of
 * OpenTelemetry is imported.
 */
export const tracing: { spans: LockSpans | undefined } = { spans: undefined };
