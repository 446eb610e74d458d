// What a caller that waits hears of three nodes, a quorum of two, and what follows from it.
import { expect, test } from "vitest";
import { type Consequence, hear, isToldByQuorum, type News, nothingHeard } from "../../../src/waiting/heard.js";

const listening = (node: number): News => ({ kind: "listening", node });
const deaf = (node: number): News => ({ kind: "deaf", node });
const first = (node: number): News => ({ kind: "told", node, otherMs: 0 });
const other = (node: number, otherMs: number): News => ({ kind: "told", node, otherMs });
const refused = (...tickets: readonly (boolean | undefined)[]): News => ({ kind: "refused", tickets });
const asking: News = { kind: "asking" };

/** Every node can tell, and has a ticket. */
const queued: readonly News[] = [listening(0), listening(1), listening(2), refused(true, true, true)];

test.each<[what: string, news: readonly News[], last: Consequence, isToldByQuorum: boolean]>([
  ["a quorum says that it is the first", [...queued, first(0), first(2)], "turn", false],
  ["all say so", [...queued, first(0), first(1), first(2)], "turn", false],
  ["one says so", [...queued, first(1)], "first", true],
  ["one says so twice", [...queued, first(1), first(1)], "first", true],
  ["one says so, another that it is another's", [...queued, first(1), other(0, 40)], "first", true],
  ["all but one say that it is another's", [...queued, first(1), other(0, 40), other(2, 40)], "first", true],
  ["a quorum says that it is another's", [...queued, other(2, 40), other(0, 90)], 90, true],
  ["the slower of a quorum counts", [...queued, other(2, 40), other(0, 90), other(1, 60)], 60, true],
  ["one says that it is another's", [...queued, other(2, 40)], "none", true],
  ["one says so again", [...queued, other(2, 40), other(2, 40)], "none", true],
  ["one says so, and then another's", [...queued, first(0), other(0, 40), first(1)], "first", false],
  ["another's, and then it is the first", [...queued, other(0, 40), other(1, 40), first(0), first(1)], "turn", false],
  ["what was told before it asked again", [...queued, first(0), asking, first(1)], "first", false],
  ["the ticket of the first is spent", [...queued, first(0)], "first", true],
  ["of two that say so, both are", [...queued, first(0), first(1), asking], "none", false],
  ["a new ticket counts", [...queued, first(0), first(1), asking, refused(true, true, true)], "none", true],
  ["a node that has not answered keeps its ticket", [...queued, asking, refused(undefined, undefined, false)], "none", true],
  ["a node that gave none has none", [...queued, refused(true, false, false)], "none", false],
  ["a ticket of a node that cannot tell is none", [listening(0), refused(true, true, true)], "none", false],
  ["one node can tell", [listening(0)], "none", false],
  ["a quorum can tell", [listening(0), listening(2)], "listening", false],
  ["more than a quorum can", [listening(0), listening(2), listening(1)], "none", false],
  ["a quorum can tell again, and has tickets", [...queued, deaf(0), listening(0)], "none", true],
  ["a quorum would still tell", [...queued, deaf(0)], "none", true],
  ["no quorum would tell any more", [...queued, deaf(0), deaf(1)], "deaf", false],
  ["that is said once", [...queued, deaf(0), deaf(1), deaf(2)], "none", false],
  ["none would have told", [listening(0), deaf(0)], "none", false],
])("%s", (_, news, last, isTold) => {
  let heard = nothingHeard(3);
  let consequence: Consequence = "none";
  for (const one of news) [heard, consequence] = hear(heard, one, 2);
  expect(consequence).toBe(last);
  expect(isToldByQuorum(heard, 2)).toBe(isTold);
});
