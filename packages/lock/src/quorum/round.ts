// Sends one request to every node at once and resolves with the verdict as soon as no further
// ballot can change it. One round for every verb. It sets no timer: every node answers within
// nodeTimeoutMs, if only with `unreachable`, so the round ends by then.
import type { InFlight } from "../platform/in-flight.js";
import type { Ballot, EpochMoved, Unreachable } from "../protocol/ballot.js";
import { brokenPromise } from "../protocol/errors.js";
import { channels, type RoundEvent } from "../protocol/events.js";
import type { LockNode, Reply } from "../protocol/node.js";

/** Ballots by node; a node that has not answered yet has none. */
export type Ballots<B> = readonly (B | undefined)[];

export interface Round<B extends Ballot, Verdict extends string> {
  readonly question: RoundEvent["question"];
  readonly resources: readonly string[];
  /**
   * By node, as noted before the first byte was sent. A grant, seal or raise of another epoch
   * is made `epoch_moved`, which does not count (T2).
   */
  readonly epochs?: Ballots<string>;
  /** Filled in as they arrive, also after the verdict. A node that has one already is not asked. */
  readonly ballots: (B | Unreachable | undefined)[];
  ask(node: LockNode): Reply<B | Unreachable>;
  judge(ballots: Ballots<B | Unreachable>): Verdict | "open";
  /**
   * Called with each ballot, also after the verdict: how many are still to come, and whose it is.
   */
  onBallot?(awaited: number, node: number): void;
}

export function askAll<B extends Ballot, Verdict extends string>(
  { nodes, inFlight }: { readonly nodes: readonly LockNode[]; readonly inFlight: InFlight },
  round: Round<B, Verdict>,
): Promise<Verdict> {
  const { question, resources, ballots } = round;
  inFlight.begin();
  return new Promise((resolve, reject) => {
    let awaited = 0;
    let isOpen = true;
    const receive = (index: number, answer: B | Unreachable): void => {
      ballots[index] = round.epochs === undefined ? answer : counted(answer, round.epochs[index]);
      awaited--;
      if (isOpen) {
        const verdict = round.judge(ballots);
        if (verdict !== "open") {
          isOpen = false;
          resolve(verdict);
        } else if (awaited === 0) {
          reject(brokenPromise(`every node answered the ${question} round, and it has no verdict`));
        }
      }
      if (awaited === 0 && channels.round.hasSubscribers) channels.round.publish({ question, resources, ballots: castBallots(ballots) });
      round.onBallot?.(awaited, index);
      if (awaited === 0) inFlight.end();
    };
    for (let i = 0; i < nodes.length; i++) {
      const node = nodes[i];
      if (node === undefined || ballots[i] !== undefined) continue;
      awaited++;
      round.ask(node).then(
        (ballot) => receive(i, ballot),
        // A node must not reject. If it does all the same, that is a defect here: the round must
        // not hang, and it is no refusal.
        (error: unknown) => receive(i, { kind: "unreachable", node: node.name, cause: `bug: ${String(error)}` }),
      );
    }
  });
}

function counted<B extends Ballot>(ballot: B, noted: string | undefined): B {
  const { kind } = ballot;
  if (kind !== "granted" && kind !== "sealed" && kind !== "raised") return ballot;
  return ballot.epoch === noted ? ballot : ({ kind: "epoch_moved", node: ballot.node } satisfies EpochMoved as Ballot as B);
}

export function noBallots<B>(size: number): (B | undefined)[] {
  return new Array(size).fill(undefined);
}

/** The ballots that have arrived by now. */
export function castBallots<B>(ballots: Ballots<B>): B[] {
  return ballots.filter((ballot) => ballot !== undefined);
}
