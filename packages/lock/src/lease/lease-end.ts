// What is told of the end of a lease, to subscribers of its loss and of every end.
import type { LeaseLostReason } from "../protocol/errors.js";
import { channels } from "../protocol/events.js";

interface Ending {
  readonly resources: readonly string[];
  readonly token: number;
}

export function publishEnd({ resources, token }: Ending, reason: LeaseLostReason, heldMs: number): void {
  const isGivenAway = reason === "released" || reason === "handed_over";
  if (!isGivenAway && channels.loss.hasSubscribers) channels.loss.publish({ resources, token, reason });
  if (channels.end.hasSubscribers) channels.end.publish({ resources, token, reason, heldMs });
}
