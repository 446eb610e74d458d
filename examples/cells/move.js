// Moves one resource from its cell to another. It may end anywhere, also by kill -9: run again, it
// finishes. A cell is { name, locker, client }: the nodes of its own lock, and its own gateway.

import { rawJson } from "@palisade/client";

/** No lease ever gets this token: below it, nothing is written any more. */
export const CLOSED = 999_999_999_999_999;

/**
 * @typedef {{ name: string, locker: import("@palisade/lock").Locker, client: import("@palisade/client").GatewayClient }} Cell
 * @typedef {{ cellOf(resource: string): Promise<string>, move(resource: string, cell: string): Promise<void> }} Directory
 */

/**
 * `step` is called before each change, with its name.
 * @param {{ resource: string, from: Cell, to: Cell, directory: Directory, waitMs?: number, step?: (name: string) => void }} move
 */
export async function moveResource({ resource, from, to, directory, waitMs = 30_000, step = () => {} }) {
  if ((await directory.cellOf(resource)) === to.name) return "it is there already";
  // The present holder finishes first. The token of this lease is above that of every earlier one.
  const lease = await from.locker.acquire(resource, { waitMs, renew: true });
  try {
    step("close");
    const closed = await from.client.changeFence(resource, { action: "raise", token: CLOSED, reason: `moves to cell ${to.name}` });
    if (!closed.ok && closed.code !== "fence_unchanged") throw new Error(`${resource} was not closed in ${from.name}: ${closed.code}`);
    // This process was paused past its lease, and another holder has written meanwhile.
    if (closed.ok && (closed.previousToken ?? 0) > lease.token) throw new Error(`a newer holder wrote ${resource}: run this again`);
    // From here on nothing changes it in the old cell, so this copy is the last.
    const last = await from.client.get(resource);
    if (!last.ok && last.code !== "not_found") throw new Error(`${resource} could not be read in ${from.name}: ${last.code}`);
    step("raise");
    await to.locker.fleet.highestToken(resource, lease.token); // Every lease in the new cell gets a higher token.
    step("copy");
    const copied = last.ok
      ? await to.client.put(resource, rawJson(last.text), { token: lease.token, seq: 1 })
      : await to.client.seal(resource, { token: lease.token });
    if (!copied.ok) throw new Error(`${resource} was not stored in ${to.name}: ${copied.code}`);
    step("point");
    await directory.move(resource, to.name);
    step("release");
    return "moved";
  } finally {
    await lease.release();
  }
}
