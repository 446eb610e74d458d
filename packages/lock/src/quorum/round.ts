// Puts one question to every node at once and gives the verdict as soon as no further ballot can change it. Never counts (that is the judge's), never retries,
// sets no timer: every node answers within nodeTimeoutMs, if only with `unreachable`, so the round ends by then.
import type { Ballot, Unreachable } from "../protocol/ballot.js";
import { channels, type RoundEvent } from "../protocol/events.js";
import type { Answer, LockNode } from "../protocol/node.js";

export interface Round<B extends Ballot, Verdict extends string> {
  readonly question: RoundEvent["question"];
  readonly resources: readonly string[];
  readonly nodes: readonly LockNode[];
  /** Ballots by node, filled in as they arrive, also after the verdict. A node whose ballot is there from the start is not asked. */
  readonly ballots: (B | Unreachable | undefined)[];
  ask(node: LockNode, index: number): Answer<B | Unreachable>;
  /** Makes a ballot of a node's answer, where not every answer counts as what it says. */
  accept?(answer: B | Unreachable, index: number): B | Unreachable;
  judge(ballots: readonly (B | Unreachable | undefined)[]): Verdict | "open";
  /** Called when the last ballot has arrived. */
  complete?(): void;
}

export function holdRound<B extends Ballot, Verdict extends string>(round: Round<B, Verdict>): Promise<Verdict> {
  const { nodes, ballots } = round;
  return new Promise((resolve, reject) => {
    let awaited = 0;
    let open = true;
    const cast = (index: number, answer: B | Unreachable): void => {
      ballots[index] = round.accept === undefined ? answer : round.accept(answer, index);
      awaited--;
      if (open) {
        const verdict = round.judge(ballots);
        if (verdict !== "open") {
          open = false;
          resolve(verdict);
        } else if (awaited === 0) {
          reject(new Error(`broken promise (please report): every node answered the ${round.question} round, and it has no verdict`));
        }
      }
      if (awaited === 0) complete(round);
    };
    for (let i = 0; i < nodes.length; i++) {
      const node = nodes[i];
      if (node === undefined || ballots[i] !== undefined) continue;
      awaited++;
      round.ask(node, i).then(
        (ballot) => cast(i, ballot),
        // A node that breaks its promise never to reject is a bug of ours; it must not hang the round or count as a refusal.
        (error: unknown) => cast(i, { kind: "unreachable", node: node.name, cause: `bug: ${String(error)}` }),
      );
    }
  });
}

function complete<B extends Ballot, Verdict extends string>(round: Round<B, Verdict>): void {
  if (channels.round.hasSubscribers) {
    channels.round.publish({ question: round.question, resources: round.resources, ballots: castBallots(round.ballots) });
  }
  round.complete?.();
}

/** The ballots that have arrived by now. */
export function castBallots<B>(ballots: readonly (B | undefined)[]): B[] {
  return ballots.filter((ballot) => ballot !== undefined);
}
