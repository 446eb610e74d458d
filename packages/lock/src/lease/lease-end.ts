// What is told of the renewals and the end of a lease, to subscribers and to tracing.
import { channels, type EndEvent, inFleet, type RenewalEvent } from "../protocol/events.js";
import type { OpenSpan } from "../protocol/spans.js";
import { noteAnswers } from "./elsewhere.js";

interface Told {
  readonly resources: readonly string[];
  readonly token: number;
}

export function publishRenewal(lease: Told, event: Omit<RenewalEvent, keyof Told>, span: OpenSpan | undefined): void {
  const { resources, token } = lease;
  noteAnswers(lease, event.ballots);
  span?.end({ outcome: event.outcome, isFailure: event.outcome !== "renewed" });
  if (channels.renewal.hasSubscribers) channels.renewal.publish({ resources, token, ...event });
}

export function publishEnd(
  { resources, token }: Told,
  { reason, heldMs, fleet }: Pick<EndEvent, "reason" | "heldMs"> & { readonly fleet: string | undefined },
  span: OpenSpan | undefined,
): void {
  const isGivenAway = reason === "released" || reason === "handed_over";
  span?.end({ outcome: reason, isFailure: !isGivenAway && reason !== "closed" });
  if (!isGivenAway && channels.loss.hasSubscribers) channels.loss.publish({ resources, token, reason, ...inFleet(fleet) });
  if (channels.end.hasSubscribers) channels.end.publish({ resources, token, reason, heldMs, ...inFleet(fleet) });
}
