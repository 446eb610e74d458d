// Takes a lock on one node and releases it, for the doctor: every command of the requests is
// executed, so a missing right shows. No caller uses this lock or waits for it.
import type { Clock } from "../platform/clock.js";
import type { Ballot } from "../protocol/ballot.js";
import type { RedisNode } from "./node.js";

const RESOURCE = "palisade:doctor";
const TTL_MS = 2_000;
/** A node's floor runs ahead of a counter by less: a token above it makes the node store one. */
const AHEAD = 8;

/** Why the node could not do all of it, by the cause of a ballot; undefined if it could. */
export async function probeLock(node: RedisNode, clock: Clock, forMs: number): Promise<string | undefined> {
  const asking = () => ({ resources: [RESOURCE], owner: clock.secret(), label: "doctor", ttlMs: TTL_MS });
  const mine = asking();
  const ear = await listen(node, clock, forMs);
  const ballots: Ballot[] = [];
  const granted = await node.grant(mine);
  ballots.push(granted);
  if (granted.kind === "granted") {
    // Refused, it gets a ticket and marks the lock, and the release then looks for waiters.
    const wait = { sinceMs: clock.wallMs(), waitedMs: 0 };
    ballots.push(await node.grant({ ...asking(), wait }), await node.extend(mine), await node.inspect(RESOURCE));
    ballots.push(await node.seal({ ...mine, token: granted.token + AHEAD }));
  }
  const released = await node.release({ ...mine, tells: true });
  ballots.push(released, await node.leave([RESOURCE]));
  ear.stop();
  const [cause] = ballots.flatMap((ballot) => (ballot.kind === "unreachable" && !ballot.unsent ? [ballot.cause] : []));
  if (cause !== undefined) return cause;
  // The script goes on without the mark.
  const isUnmarked = ear.isListening && released.kind === "released" && released.listeners === 0;
  return isUnmarked ? "NOPERM: the user lacks a permission the lock needs (+append)" : undefined;
}

interface Ear {
  readonly isListening: boolean;
  stop(): void;
}

function listen(node: RedisNode, clock: Clock, forMs: number): Promise<Ear> {
  return new Promise((resolve) => {
    const heard = (isListening: boolean): void => {
      clock.clearTimer(timer);
      resolve({ isListening, stop: () => stop() });
    };
    const timer = clock.setTimer(forMs, () => heard(false));
    const stop = node.onReleased(RESOURCE, { released() {}, deaf() {}, listening: () => heard(true) });
  });
}
