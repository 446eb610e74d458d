// What a caller that waits has heard of the nodes, and what follows from it: a pure reducer, without
// time. A node tells two callers of a release: the first in its queue, for which it keeps the lock, and
// the one behind it, the backup, which looks whether the first one came.

/** One node, for this caller. */
interface Ear {
  /** It can tell the caller: its messages are received. */
  readonly isListening: boolean;
  /** The caller has a ticket in its queue, for all that is known. */
  readonly hasTicket: boolean;
  /** What it told since it was asked last. */
  readonly told: Rank | undefined;
}

export type Rank = "first" | "backup";

/** By the node's index. */
export type Heard = readonly Ear[];

export type News =
  /** The nodes are about to be asked: what they told before is used up. */
  | { readonly kind: "asking" }
  /** They refused; by node, whether it gave a ticket. undefined: it has not answered. */
  | { readonly kind: "refused"; readonly tickets: readonly (boolean | undefined)[] }
  | { readonly kind: "told"; readonly node: number; readonly rank: Rank }
  | { readonly kind: "listening"; readonly node: number }
  | { readonly kind: "deaf"; readonly node: number };

/**
 * - `turn`: a quorum is free and waits for this caller.
 * - `backup`: a quorum has told, and some serve another one first: look whether that one comes.
 * - `disagreement`: one node says that it is the first, and no quorum has told: should that last,
 *   the nodes do not agree on who is the first.
 * - `listening`: a quorum can tell now. What was published before is lost, and perhaps the tickets.
 * - `deaf`: a quorum would have told, and can no more.
 */
export type Consequence = "turn" | "backup" | "disagreement" | "listening" | "deaf" | "none";

/** Before anything was heard. */
export function nothingHeard(nodes: number): Heard {
  return new Array<Ear>(nodes).fill({ isListening: false, hasTicket: false, told: undefined });
}

/** Would a quorum tell this caller when it is the next one? */
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
  if (news.kind === "asking") return { ...ear, told: undefined };
  if (news.kind === "refused") {
    const given = news.tickets[node];
    return given === undefined ? ear : { ...ear, hasTicket: given && ear.isListening };
  }
  if (news.node !== node) return ear;
  if (news.kind === "listening") return { ...ear, isListening: true };
  if (news.kind === "deaf") return { ...ear, isListening: false, hasTicket: false };
  // The ticket of the first is used up.
  return news.rank === "first" ? { ...ear, told: "first", hasTicket: false } : { ...ear, told: ear.told ?? "backup" };
}

/** Of what the nodes told until now. One alone may be late, with the lock held again on the others. */
function consequenceOf(heard: Heard, quorum: number): Consequence {
  const first = count(heard, ({ told }) => told === "first");
  if (first >= quorum) return "turn";
  if (count(heard, ({ told }) => told !== undefined) >= quorum) return "backup";
  return first === 1 ? "disagreement" : "none";
}

function count(heard: Heard, holds: (ear: Ear) => boolean): number {
  let ears = 0;
  for (const ear of heard) if (holds(ear)) ears++;
  return ears;
}
