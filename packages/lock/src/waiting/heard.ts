// What a caller that waits has heard of the nodes, and what follows from it: a pure reducer, without
// time. Where what it wants is free, a node tells three callers: the first in its queue, for which it
// keeps it, and the next and the last, which look when that reservation is over.

/** One node, for this caller. */
interface Ear {
  /** It can tell the caller: its messages are received. */
  readonly isListening: boolean;
  /** The caller has a ticket in its queue, for all that is known. */
  readonly hasTicket: boolean;
  /**
   * What it told since it was asked: for how many ms it is reserved for another; 0: for this caller;
   * undefined: nothing.
   */
  readonly otherMs: number | undefined;
}

/** By the node's index. */
export type Heard = readonly Ear[];

export type News =
  /** The nodes are about to be asked: what they told before is used up. */
  | { readonly kind: "asking" }
  /** They refused; by node, whether it gave a ticket. undefined: it has not answered. */
  | { readonly kind: "refused"; readonly tickets: readonly (boolean | undefined)[] }
  | { readonly kind: "told"; readonly node: number; readonly otherMs: number }
  | { readonly kind: "listening"; readonly node: number }
  | { readonly kind: "deaf"; readonly node: number };

/**
 * - `turn`: a quorum is free and waits for this caller.
 * - `first`: less than a quorum does so far. Should that last, its ticket has to be given again there.
 * - a number: a quorum is free, and some serve another one for so many milliseconds: whether it comes
 *   is worth a look then.
 * - `listening`: a quorum can tell now. What was published before is lost, and perhaps the tickets.
 * - `deaf`: a quorum would have told, and can no more.
 */
export type Consequence = "turn" | "first" | number | "listening" | "deaf" | "none";

/** Before anything was heard. */
export function nothingHeard(nodes: number): Heard {
  return new Array<Ear>(nodes).fill({ isListening: false, hasTicket: false, otherMs: undefined });
}

/** Would a quorum tell this caller when it is the first? */
export function isToldByQuorum(heard: Heard, quorum: number): boolean {
  return count(heard, ({ hasTicket }) => hasTicket) >= quorum;
}

export function hear(before: Heard, news: News, quorum: number): readonly [heard: Heard, consequence: Consequence] {
  const heard = before.map((ear, node) => after(ear, news, node));
  const wasSure = isToldByQuorum(before, quorum);
  const isSure = isToldByQuorum(heard, quorum);
  if (news.kind === "told") return [heard, consequenceOf(heard, quorum)];
  if (news.kind === "listening" && !isSure && count(heard, ({ isListening }) => isListening) === quorum) return [heard, "listening"];
  return [heard, news.kind === "deaf" && wasSure && !isSure ? "deaf" : "none"];
}

function after(ear: Ear, news: News, node: number): Ear {
  if (news.kind === "asking") return { ...ear, otherMs: undefined };
  if (news.kind === "refused") {
    const given = news.tickets[node];
    return given === undefined ? ear : { ...ear, hasTicket: given && ear.isListening };
  }
  if (news.node !== node) return ear;
  if (news.kind === "listening") return { ...ear, isListening: true };
  if (news.kind === "deaf") return { ...ear, isListening: false, hasTicket: false };
  // The ticket of the first is spent.
  return { ...ear, otherMs: news.otherMs, hasTicket: ear.hasTicket && news.otherMs > 0 };
}

/**
 * Of what the nodes told until now, those that told 0 ("for you") first. One alone may be late, with the
 * lock held again on the others.
 */
function consequenceOf(heard: Heard, quorum: number): Consequence {
  const told = heard.flatMap(({ otherMs }) => otherMs ?? []).sort((a, b) => a - b);
  const quorumMs = told[quorum - 1];
  if (quorumMs === 0) return "turn";
  return told[0] === 0 ? "first" : (quorumMs ?? "none");
}

function count(heard: Heard, holds: (ear: Ear) => boolean): number {
  let ears = 0;
  for (const ear of heard) if (holds(ear)) ears++;
  return ears;
}
