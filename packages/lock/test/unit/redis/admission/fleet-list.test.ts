// When a look at the list of one fleet is over, and which meetings with its nodes make another one
// necessary. The nodes are scripted: a look must not end before it can tell, however late they are.
import { expect, test, vi } from "vitest";
import type { FleetListing } from "../../../../src/protocol/fleet-list.js";
import { listingOf, type Meetings } from "../../../../src/redis/admission/fleet-list.js";
import type { AdmissionSettings } from "../../../../src/redis/admission/steps.js";
import { keysOf } from "../../../../src/redis/keys.js";
import type { RedisNode } from "../../../../src/redis/node.js";
import type { NodeStatus } from "../../../../src/redis/node-record.js";

/** Of a node that votes in this generation, or is closed. */
function statusIn(generation: string, mark = "votes"): NodeStatus {
  const runId = "a".repeat(40);
  const admission = { mark, runId, generation };
  return { runId, admission, floor: 1, format: "1" } as unknown as NodeStatus;
}

function answerLater() {
  let resolve = (_status: NodeStatus): void => {};
  let reject = (_error: Error): void => {};
  const promise = new Promise<NodeStatus>((onAnswer, onError) => {
    resolve = onAnswer;
    reject = onError;
  });
  return { promise, resolve, reject };
}

/** Three nodes, in the generation "2-b" for all that is known here. */
function scripted() {
  const answers = [0, 1, 2].map(() => answerLater());
  const connections = answers.map(({ promise }) => ({ isUp: true, run: () => promise }));
  const nodes = connections.map(
    (connection, i) => ({ name: `n${i}`, connection, met: () => Promise.resolve(), noteStatus: () => {}, noteBlocked: () => {} }) as object,
  ) as RedisNode[];
  const fleet = { members: nodes, all: nodes, generation: "2-b", roster: {} };
  const met: Meetings = { times: 0, last: new Map() };
  const settings = { fleet, keys: keysOf("n") } as unknown as AdmissionSettings;
  const onNews = vi.fn(() => {});
  const listing = listingOf(settings, { met, settled: Promise.resolve(), onNews });
  return { answers, connections, fleet, met, onNews, listing };
}

/** Reached, for the first time or again. */
function meet(met: Meetings, node: number): void {
  met.last.set(`n${node}`, ++met.times);
}

function looking(listing: FleetListing): { isOver: boolean } {
  const look = { isOver: false };
  void listing.lookAgain().then(() => {
    look.isOver = true;
  });
  return look;
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("W1 a look at the list of a fleet is over when most of its nodes vote in the known generation, whoever is silent", async () => {
  const { answers, listing } = scripted();
  const look = looking(listing);
  answers[0]?.resolve(statusIn("2-b"));
  await turn();
  expect(look.isOver).toBe(false);
  answers[2]?.resolve(statusIn("2-b"));
  await turn();
  expect(look.isOver).toBe(true);
});

test.for([
  ["votes in the next generation", statusIn("3-c")],
  ["has left the known one", statusIn("2-b", "closed")],
  ["votes in the one before", statusIn("1-a")],
] as const)("L2 F1 a look does not end with the vote of one node and the word of another that %s", async ([, other]) => {
  const { answers, listing } = scripted();
  const look = looking(listing);
  answers[0]?.resolve(statusIn("2-b"));
  answers[1]?.resolve(other);
  await turn();
  expect(look.isOver).toBe(false);
  answers[2]?.reject(new Error("TIMEOUT"));
  await turn();
  expect(look.isOver).toBe(true);
});

test("L2 F1 a look counts only votes of the generation that it has heard of by then", async () => {
  const { answers, fleet, listing, onNews } = scripted();
  const look = looking(listing);
  answers[0]?.resolve(statusIn("2-b"));
  await turn();
  onNews.mockImplementation(() => {
    fleet.generation = "3-c";
  });
  answers[1]?.resolve(statusIn("3-c"));
  await turn();
  expect(look.isOver).toBe(false);
  answers[2]?.resolve(statusIn("3-c"));
  await turn();
  expect(look.isOver).toBe(true);
});

test("L2 a fleet is back since a look when most of its nodes are up, and fewer have been all the while", () => {
  const { connections, listing, met } = scripted();
  for (const node of [0, 1, 2]) meet(met, node);
  expect(listing.isBackSince(0)).toBe(true);
  expect(listing.isBackSince(3)).toBe(false);
  meet(met, 0);
  meet(met, 0);
  expect(listing.isBackSince(3), "one of three was met twice").toBe(false);
  meet(met, 1);
  expect(listing.isBackSince(3), "two of three were met").toBe(true);
  expect(listing.isBackSince(5), "one of three was met").toBe(false);
  Object.assign(connections[2] ?? {}, { isUp: false });
  expect(listing.isBackSince(5), "one was met, one was up, one is down").toBe(true);
  Object.assign(connections[1] ?? {}, { isUp: false });
  expect(listing.isBackSince(5), "two are down").toBe(false);
});
