// One attempt, with nodes that answer what real ones answer only with bad luck.
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { describe, expect, test, vi } from "vitest";
import { acquire } from "../../../src/lease/acquire.js";
import type { GrantBallot } from "../../../src/protocol/ballot.js";
import { channelNames } from "../../../src/protocol/events.js";
import { ManualClock, ScriptedNode, stateOf } from "../scripted-node.js";

const wish = { resources: ["r"], label: "l", ttlMs: 10_000 };
const grants = (...tokens: number[]): ScriptedNode[] =>
  tokens.map((token, i) => new ScriptedNode(`n${i + 1}`, { grant: (node) => node.granted(token) }));
const never = new Promise<never>(() => {});
const held = (name: string): ScriptedNode =>
  new ScriptedNode(name, {
    grant: () => ({ kind: "held", node: name, resource: "r", holder: "h", remainingMs: 9 }),
  });

/** All that is awaited is there at once, or never comes. */
const inTime = { timeout: 20_000 };

describe("the token", inTime, () => {
  test("T1 is the highest of the quorum's; where a quorum granted exactly that, no second round is held", async () => {
    const nodes = grants(7, 7, 7);
    expect(await acquire(stateOf(nodes), wish)).toMatchObject({ kind: "won", token: 7 });
    expect(nodes.flatMap(({ asked }) => asked)).toEqual(["grant", "grant", "grant"]);
  });

  test("T1 is sealed on the granting nodes that store less, and on no other", async () => {
    const nodes = [...grants(7, 5, 6), held("n4"), new ScriptedNode("n5", { grant: () => never })];
    expect(await acquire(stateOf(nodes), wish)).toMatchObject({ kind: "won", token: 7 });
    expect(nodes.map(({ asked }) => asked.join())).toEqual(["grant", "grant,seal 7", "grant,seal 7", "grant", "grant"]);
  });

  test("T1 is what a quorum granted alike, also where another node granted more: no second round is held", async () => {
    const nodes = grants(5, 7, 5, 5, 7);
    expect(await acquire(stateOf(nodes), wish)).toMatchObject({ kind: "won", token: 5 });
    for (const { asked } of nodes) expect(asked).toEqual(["grant"]);
  });

  test("T1 is sealed at once where the grants to come cannot make a quorum alike", async () => {
    const nodes = [...grants(5, 6, 7), ...["n4", "n5"].map((name) => new ScriptedNode(name, { grant: () => never }))];
    const clock = new ManualClock();
    nodes[3] = held("n4");
    expect(await acquire(stateOf(nodes, clock), wish)).toMatchObject({ kind: "won", token: 7 });
    expect(clock.timers).toBe(0);
  });

  test("is waited for no longer than the first grants took: then the highest is sealed, if others are silent", async () => {
    const clock = new ManualClock();
    const nodes = [...grants(5, 7), ...["n3", "n4", "n5"].map((name) => new ScriptedNode(name, { grant: () => never }))];
    nodes[2] = new ScriptedNode("n3", {
      grant: (node) => {
        clock.now += 4;
        return node.granted(5);
      },
    });
    const acquired = acquire(stateOf(nodes, clock), wish);
    await vi.waitFor(() => expect(clock.timers).toBe(1));
    clock.advance(3);
    expect(clock.timers).toBe(1);
    clock.advance(1);
    expect(await acquired).toMatchObject({ kind: "won", token: 7 });
    expect(nodes.map(({ asked }) => asked.join())).toEqual(["grant,seal 7", "grant", "grant,seal 7", "grant", "grant"]);
  });

  test("T2 is not ours where the key ran out before it was sealed: the attempt is lost and given back", async () => {
    const nodes = ["n1", "n2", "n3"].map(
      (name, i) =>
        new ScriptedNode(name, {
          grant: (node) => node.granted(i + 1),
          seal: (node) => ({ kind: "lost", node: node.name }),
        }),
    );
    expect(await acquire(stateOf(nodes), wish)).toMatchObject({ kind: "lost", reason: "too_slow" });
    for (const node of nodes) expect(node.asked.at(-1)).toBe("release");
  });
});

describe("an epoch that moves under an attempt", inTime, () => {
  test("T2 voids the grant that carries it: nothing is won with it, all is given back, and a fresh owner asks at once", async () => {
    const nodes = ["n1", "n2", "n3"].map(
      (name) =>
        new ScriptedNode(name, {
          grant: (node) => {
            if (node.owners.length === 1 && name !== "n1") node.now = "e2";
            return node.granted(7);
          },
        }),
    );
    expect(await acquire(stateOf(nodes), wish)).toMatchObject({ kind: "won", token: 7 });
    for (const node of nodes) expect(node.asked).toEqual(["grant", "release", "grant"]);
    expect(new Set(nodes.flatMap(({ owners }) => owners)).size).toBe(2);
  });

  test("costs nothing when the others make a quorum", async () => {
    const nodes = grants(7, 7, 7);
    nodes.push(new ScriptedNode("n4", { grant: (node) => node.granted(9, "e2") }));
    expect(await acquire(stateOf(nodes), wish)).toMatchObject({ kind: "won", token: 7 });
  });

  test("T2 voids a seal that carries it", async () => {
    const nodes = [
      ...grants(7),
      ...["n2", "n3"].map(
        (name, i) =>
          new ScriptedNode(name, {
            grant: (node) => node.granted(6 - i),
            seal: (node) => {
              if (node.owners.length === 1) node.now = "e2";
              return { kind: "sealed", node: node.name, epoch: node.now };
            },
          }),
      ),
    ];
    expect((await acquire(stateOf(nodes), wish)).kind).toBe("won");
    expect(nodes[1]?.asked).toEqual(["grant", "seal 7", "release", "grant", "seal 7"]);
  });

  test("and goes on moving is given up after a few times, as no quorum", async () => {
    const nodes = ["n1", "n2", "n3"].map((name) => new ScriptedNode(name, { grant: (node) => node.granted(7, `never ${node.now}`) }));
    const outcome = await acquire(stateOf(nodes), wish);
    expect(outcome).toMatchObject({ kind: "lost", reason: "no_quorum" });
    expect(nodes[0]?.owners.length).toBeLessThanOrEqual(5);
  });
});

describe("a lost attempt", () => {
  test("is given back where it was granted and where it still may be, not where it was refused", async () => {
    const nodes = [...grants(7), held("n2"), held("n3"), held("n4"), new ScriptedNode("n5", { grant: () => never })];
    expect(await acquire(stateOf(nodes), wish)).toMatchObject({ kind: "lost", reason: "held", grants: 1 });
    expect(nodes.map(({ asked }) => asked.at(-1))).toEqual(["release", "grant", "grant", "grant", "release"]);
  });

  test("without a ticket is given back at once where nodes have not answered, before the next one comes", async () => {
    const silent = (name: string) => new ScriptedNode(name, { grant: () => new Promise<GrantBallot>(() => {}) });
    const nodes = [held("n1"), held("n2"), held("n3"), silent("n4"), silent("n5")];
    const state = stateOf(nodes);
    state.policy = { ...state.policy, size: 5, quorum: 3 };
    expect(await acquire(state, wish)).toMatchObject({ kind: "lost" });
    expect(nodes.map(({ asked }) => asked.join())).toEqual(["grant", "grant", "grant", "grant,release", "grant,release"]);
  });

  test("that no node has granted yet waits for the other answers, and is given back where they say that it was granted, or nothing", async () => {
    const answers: ((ballot: GrantBallot) => void)[] = [];
    const late = (name: string) => new ScriptedNode(name, { grant: () => new Promise((resolve) => answers.push(resolve)) });
    const nodes = [held("n1"), held("n2"), held("n3"), ...["n4", "n5", "n6", "n7"].map(late), held("n8"), held("n9")];
    const state = stateOf(nodes);
    state.policy = { ...state.policy, size: 9, quorum: 5 };
    const waiting = { ...wish, wait: { ticket: ":t", sinceMs: 0, waitedMs: 0, reserveMs: 40 } };
    expect(await acquire(state, waiting)).toMatchObject({ kind: "lost", reason: "held", grants: 0 });
    expect(nodes.flatMap(({ asked }) => asked)).toEqual(Array(9).fill("claim"));
    const [n4, n5, n6, n7] = nodes.slice(3) as [ScriptedNode, ScriptedNode, ScriptedNode, ScriptedNode];
    answers[0]?.(n4.granted(7));
    answers[1]?.({ kind: "held", node: "n5", resource: "r", holder: "h", remainingMs: 9 });
    answers[2]?.({ kind: "unreachable", node: "n6", cause: "TIMEOUT after 50 ms" });
    answers[3]?.({ kind: "unreachable", node: "n7", cause: "ECONNREFUSED", unsent: true });
    await state.inFlight.idle();
    expect([n4, n5, n6, n7].map(({ asked }) => asked.join())).toEqual(["claim,release", "claim", "claim,release", "claim"]);
  });

  test("L1 is one whose answers took so long that too little is left, by the clock that says less", async () => {
    for (const passMs of ["now", "wallOffsetMs"] as const) {
      const clock = new ManualClock();
      const nodes = ["n1", "n2", "n3"].map(
        (name, i) =>
          new ScriptedNode(name, {
            grant: (node) => {
              if (i === 1) clock[passMs] += 9_000;
              return node.granted(7);
            },
          }),
      );
      const outcome = await acquire(stateOf(nodes, clock), wish);
      expect(outcome).toMatchObject({ kind: "lost", reason: "too_slow", leftMs: 898 });
    }
  });

  test("is one in which a node breaks its promise never to reject: unreachable, not held", async () => {
    const nodes = grants(7, 7);
    for (const name of ["n3", "n4", "n5"]) nodes.push(new ScriptedNode(name, { grant: () => Promise.reject(new Error("oops")) }));
    const outcome = await acquire(stateOf(nodes), wish);
    expect(outcome).toMatchObject({ kind: "lost", reason: "no_quorum" });
    if (outcome.kind === "lost") expect(outcome.ballots.filter(({ kind }) => kind === "unreachable")).toHaveLength(3);
  });
});

describe("the event of an attempt", inTime, () => {
  test("is published to a subscriber that came while the nodes were being asked", async () => {
    let answer: (ballot: GrantBallot) => void = () => {};
    const slow = new ScriptedNode("n3", { grant: () => new Promise((resolve) => (answer = resolve)) });
    const nodes = [...grants(7, 7), slow];
    expect(await acquire(stateOf(nodes), wish)).toMatchObject({ kind: "won" });
    const events: unknown[] = [];
    const onEvent = (event: unknown): void => void events.push(event);
    subscribe(channelNames.attempt, onEvent);
    try {
      answer(slow.granted(7));
      await vi.waitFor(() => expect(events).toMatchObject([{ outcome: "won", token: 7, rounds: 1 }]));
    } finally {
      unsubscribe(channelNames.attempt, onEvent);
    }
  });
});
