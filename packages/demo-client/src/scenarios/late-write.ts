// Worker 1 writes late, after worker 2 has taken over, with a fence and without one.
import type { Act, ActRun } from "../engine/act-run.js";
import type { Document, Granted, WriteResult } from "../worker/protocol.js";

/** How such an act ends. */
export interface Outcome {
  readonly late: WriteResult;
  readonly stored: Document | null;
}

/** The leases of worker 1 and of worker 2. */
export interface Leases {
  readonly older: Granted;
  readonly newer: Granted;
}

export function fenced(title: string, play: Act["play"]): Act {
  return { title, actors: ["worker 1", "worker 2", "lock", "gateway", "store"], route: "gateway", play };
}

export function unfenced(title: string, play: Act["play"]): Act {
  return { title, actors: ["worker 1", "worker 2", "lock", "store"], route: "postgres", play };
}

/** With the fence and without it: the lock itself has kept the two leases apart. */
export function expectTurns(act: ActRun, { older, newer }: Leases): void {
  act.expect("worker 2 got the lock only when worker 1's lease was over", newer.grantedAt >= older.validUntilAt);
}

export function expectRefusal(act: ActRun, { late, stored }: Outcome, claim = "worker 1 is told that its token is stale"): void {
  act.expect(claim, codeOf(late), "fencing_token_stale");
  act.expect("what is stored is worker 2's", stored?.by, "worker 2");
}

export function expectLoss(act: ActRun, { late, stored }: Outcome, claim = "worker 1's late write is stored"): void {
  act.expectDamage(claim, late.ok);
  act.expectDamage("worker 2's update is lost", stored?.by, "worker 1");
}

/** The code of a refusal, to be compared with the one that a scenario claims. */
export function codeOf(answer: { readonly ok: true } | { readonly ok: false; readonly code: string }): string {
  return answer.ok ? "ok" : answer.code;
}
