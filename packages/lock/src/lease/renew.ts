// Asks the nodes to hold a lease longer. An extension never creates a key; a node that lost the key
// gets it again (heal) only after a quorum confirmed the owner in this very round. New members are
// given it before they are asked (plant), for no longer than the lease lasts.
import type { ExtendBallot } from "../protocol/ballot.js";
import type { QuestionOf } from "../protocol/verbs.js";
import { askAll, type Ballots, castBallots, noBallots, type QuorumRule, type Voters } from "../quorum.js";
import type { LockerState } from "./state.js";

interface RenewalQuestion {
  readonly resources: readonly string[];
  readonly owner: string;
  readonly label: string;
  readonly token: number;
  readonly ttlMs: number;
  /**
   * Where other nodes are members now than those that granted it: for how long its key is created,
   * before they are asked, on those that lack it. Of three nodes two may hold it, and of five that
   * is no quorum. No longer than what is left of the lease.
   */
  readonly plantMs?: number;
  /**
   * Whether the lease is still held and was not extended again since: checked before any key is
   * created.
   */
  isWanted(): boolean;
}

/**
 * `renewed`: a quorum renewed it. `lost`: so many nodes do not have this owner that no quorum is
 * left. `unknown`: neither could be learnt.
 */
export type RenewalVerdict = "renewed" | "lost" | "unknown" | "open";

export interface RenewalAnswer {
  readonly verdict: Exclude<RenewalVerdict, "open">;
  readonly ballots: readonly ExtendBallot[];
}

export async function renew(locker: LockerState, question: RenewalQuestion): Promise<RenewalAnswer> {
  const { resources, owner, label, token, ttlMs, plantMs = 0 } = question;
  // The members that are asked must be those of the generation in which their answers count.
  let planted: LockerState["nodes"] | undefined;
  while (plantMs > 0 && planted !== locker.nodes) {
    planted = locker.nodes;
    await plant(locker, { resources, owner, label, token, ttlMs: plantMs });
  }
  const { clock, inFlight, nodes, policy } = locker;
  const ballots = noBallots<ExtendBallot>(nodes.length);
  let verdict: RenewalVerdict = "open";
  const startAt = clock.monotonicMs();
  verdict = await askAll<ExtendBallot, Exclude<RenewalVerdict, "open">>(locker, {
    question: "extend",
    resources,
    ballots,
    ask: (node) => node.ask("extend", { resources, owner, ttlMs }),
    judge: (cast) => {
      verdict = tallyExtensions(cast, policy);
      return verdict;
    },
    onBallot: (awaited) => {
      if (awaited > 0) return;
      // For what is left of the ttl, not for a whole one: the key must not outlive the others by
      // the time that the slowest node took to answer.
      const leftMs = Math.floor(startAt + ttlMs - clock.monotonicMs());
      if (verdict === "renewed" && question.isWanted()) heal({ inFlight, nodes }, { ...question, ttlMs: leftMs }, ballots);
    },
  });
  return { verdict, ballots: castBallots(ballots) };
}

/** Does a quorum still have this owner? */
export function tallyExtensions(ballots: Ballots<ExtendBallot>, { size, quorum }: QuorumRule): RenewalVerdict {
  let yes = 0;
  let no = 0;
  let open = 0;
  for (let i = 0; i < size; i++) {
    const kind = ballots[i]?.kind;
    if (kind === "extended") yes++;
    else if (kind === "missing" || kind === "taken") no++;
    else if (kind === undefined) open++;
  }
  if (yes >= quorum) return "renewed";
  if (size - no < quorum) return "lost";
  return yes + open >= quorum || size - no - open < quorum ? "open" : "unknown";
}

async function plant({ inFlight, nodes }: LockerState, question: QuestionOf<"heal">): Promise<void> {
  inFlight.begin();
  await Promise.all(nodes.map((node) => new Promise((resolve) => node.ask("heal", question).then(resolve))));
  inFlight.end();
}

// Not waited for: a heal that fails changes nothing, and the next renewal sees that.
function heal({ inFlight, nodes }: Voters, question: QuestionOf<"heal">, ballots: Ballots<ExtendBallot>): void {
  const { resources, owner, token, ttlMs, label } = question;
  if (ttlMs < 1) return;
  for (const [i, node] of nodes.entries()) {
    if (ballots[i]?.kind !== "missing") continue;
    inFlight.begin();
    void node.ask("heal", { resources, owner, token, ttlMs, label }).then(() => inFlight.end());
  }
}
