// What a caller that waits hears of three nodes, a quorum of two, and what follows from it.
import { expect, test } from "vitest";
import { hear, isToldByQuorum, type News, nothingHeard } from "../../../src/waiting/heard.js";

const listening = (node: number): News => ({ kind: "listening", node });
const deaf = (node: number): News => ({ kind: "deaf", node });
const first = (node: number): News => ({ kind: "told", node, rank: "first" });
const backup = (node: number): News => ({ kind: "told", node, rank: "backup" });
const refused = (...tickets: readonly (boolean | undefined)[]): News => ({ kind: "refused", tickets });
const asking: News = { kind: "asking" };

/** Every node can tell, and has a ticket. */
const queued: readonly News[] = [listening(0), listening(1), listening(2), refused(true, true, true)];

test.each<[what: string, news: readonly News[], last: string, isToldByQuorum: boolean]>([
  ["a quorum says that it is the first", [...queued, first(0), first(2)], "turn", false],
  ["all say so", [...queued, first(0), first(1), first(2)], "turn", false],
  ["one says so", [...queued, first(1)], "disagreement", true],
  ["one says so twice", [...queued, first(1), first(1)], "disagreement", true],
  ["one says first, another backup", [...queued, first(1), backup(0)], "backup", true],
  ["a quorum says backup", [...queued, backup(2), backup(0)], "backup", true],
  ["one says backup", [...queued, backup(2)], "none", true],
  ["one says first, and then backup", [...queued, first(0), backup(0), first(1)], "turn", false],
  ["what was told before it asked again", [...queued, first(0), asking, first(1)], "disagreement", false],
  ["the ticket of the first is used up", [...queued, first(0)], "disagreement", true],
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
  let consequence = "none";
  for (const one of news) [heard, consequence] = hear(heard, one, 2);
  expect(consequence).toBe(last);
  expect(isToldByQuorum(heard, 2)).toBe(isTold);
});
