// Which waiters are notified of a release, on one node: two of the occupied wake slots.
import { describe, expect, type SharedRedis, test } from "@palisade/testkit/vitest";
import { Cluster } from "ioredis";
import type { ReleaseListener } from "../../../src/protocol/node.js";
import { asking, type Opened, opened } from "./opened-fleet.js";

/** Writes down what is heard, in words. */
function writing(heard: string[], who: string): ReleaseListener {
  return {
    listening: () => heard.push(`${who} listens`),
    deaf: () => heard.push(`${who} is deaf`),
    released: ({ rank, listeners }) => heard.push(`${who} is told, rank ${rank} of ${listeners}`),
  };
}

function one({ urls, namespace }: SharedRedis): Promise<Opened> {
  return opened([urls[0] ?? ""], { namespace });
}

/** A lock whose holder has waited for it. */
function wanted(resource: string) {
  return { ...asking(resource), hasWaited: true } as const;
}

describe("a release", () => {
  test("looks for waiters only where a request was refused or the holder had waited, one request at a time or many at once", async ({
    redis,
  }) => {
    await using lock = await one(redis);
    const node = lock.node("n1");
    const heard: string[] = [];
    node.onReleased("a", 3, writing(heard, "a"));
    node.onReleased("b", 3, writing(heard, "b"));
    await expect.poll(() => heard).toHaveLength(2);
    const untold = [
      { ...asking("a"), notifyFrom: 3 },
      { ...asking("b"), notifyFrom: 3 },
    ];
    const told = untold.map((question) => ({ ...question, owner: `${question.owner}-too`, notifyFrom: 3 }));
    for (const questions of [untold, told]) {
      await Promise.all(questions.map((question) => node.grant(question)));
      if (questions === told) await Promise.all(questions.map(({ resources }) => node.grant(asking(resources))));
      const answers = await Promise.all(questions.map((question) => node.release(question)));
      expect(answers).toMatchObject(questions.map(() => ({ kind: "released", listeners: questions === told ? 1 : 0 })));
    }
    const single = { ...asking("a"), owner: "an-owner-of-22-letters", notifyFrom: 3 };
    await node.grant(single);
    expect(await node.release(single)).toMatchObject({ kind: "released", listeners: 0 });
    await node.grant(single);
    await node.grant(asking("a"));
    expect(await node.release(single)).toMatchObject({ kind: "released", listeners: 1 });
    await expect
      .poll(() => heard.slice(2).toSorted())
      .toEqual(["a is told, rank 0 of 1", "a is told, rank 0 of 1", "b is told, rank 0 of 1"]);
  });

  test("of a lock that is wanted changes no inspection, repeated grant, extension or healing", async ({ redis }) => {
    await using lock = await one(redis);
    const node = lock.node("n1");
    const question = asking("a");
    const granted = await node.grant(question);
    const refused = { kind: "held", holder: question.label };
    expect(await node.grant(asking("a"))).toMatchObject(refused);
    expect(await node.grant(asking("a"))).toMatchObject(refused);
    expect(await node.grant(question)).toEqual(granted);
    expect(await node.inspect("a")).toMatchObject({ holder: question.label });
    expect(await node.extend(question)).toMatchObject({ kind: "extended" });
    expect(await node.heal({ ...question, token: 1 })).toMatchObject({ kind: "extended" });
    const heard: string[] = [];
    node.onReleased("a", 0, writing(heard, "a"));
    await expect.poll(() => heard).toHaveLength(1);
    expect(await node.release({ ...question, notifyFrom: 16 })).toMatchObject({ listeners: 1 });
  });

  test("notifies the first two occupied wake slots from a number on, all waiters there, and no others", async ({ redis }) => {
    await using lock = await one(redis);
    await using neighbour = await one(redis);
    const heard: string[] = [];
    const seats = { "at 1": 1, "at 4": 4, "at 9": 9 };
    for (const [who, seat] of Object.entries(seats)) lock.node("n1").onReleased("a", seat, writing(heard, who));
    neighbour.node("n1").onReleased("a", 4, writing(heard, "also at 4"));
    neighbour.node("n1").onReleased("b", 4, writing(heard, "elsewhere"));
    await expect.poll(() => heard).toHaveLength(5);
    const told: Record<number, readonly string[]> = {
      2: ["also at 4 is told, rank 0 of 2", "at 4 is told, rank 0 of 2", "at 9 is told, rank 1 of 1"],
      9: ["at 1 is told, rank 1 of 1", "at 9 is told, rank 0 of 1"],
      1794992471466: ["also at 4 is told, rank 1 of 2", "at 4 is told, rank 1 of 2", "at 1 is told, rank 0 of 1"],
    };
    for (const [from, expected] of Object.entries(told)) {
      heard.length = 0;
      const question = { ...wanted("a"), notifyFrom: Number(from) };
      await lock.node("n1").grant(question);
      // The subscribers of a resource are counted by connection: two lockers wait here.
      expect(await lock.node("n1").release(question)).toEqual({ kind: "released", node: "n1", listeners: 2 });
      await expect.poll(() => heard.toSorted()).toEqual(expected.toSorted());
    }
  });

  test("from 0 notifies no waiter, but says how many there are", async ({ redis }) => {
    await using lock = await one(redis);
    const heard: string[] = [];
    lock.node("n1").onReleased("a", 0, writing(heard, "at 0"));
    await expect.poll(() => heard).toEqual(["at 0 listens"]);
    for (const [notifyFrom, listeners] of [
      [0, 1],
      [16, 1],
    ] as const) {
      const question = { ...wanted("a"), notifyFrom };
      await lock.node("n1").grant(question);
      expect(await lock.node("n1").release(question)).toMatchObject({ listeners });
    }
    await expect.poll(() => heard).toEqual(["at 0 listens", "at 0 is told, rank 0 of 1"]);
  });

  test("by force is told as well", async ({ redis }) => {
    await using lock = await one(redis);
    const heard: string[] = [];
    lock.node("n1").onReleased("a:b}", 15, writing(heard, "at 15"));
    await lock.node("n1").grant(asking("a:b}"));
    await expect.poll(() => heard).toEqual(["at 15 listens"]);
    await lock.node("n1").raise({ resource: "a:b}", token: 7, remove: "holder" });
    await expect.poll(() => heard).toEqual(["at 15 listens", "at 15 is told, rank 0 of 1"]);
  });

  test("of a node that is itself a cluster notifies all wake slots, because waiters cannot be counted there", async ({ fleet }) => {
    const { nodes } = await fleet({ nodes: 1, config: { "cluster-enabled": "yes" } });
    await nodes[0]?.cli("CLUSTER", "ADDSLOTSRANGE", 0, 16383);
    // A cluster lets two seconds pass before it serves anybody.
    await nodes[0]?.shiftClock(3_000);
    await expect.poll(async () => String(await nodes[0]?.cli("CLUSTER", "INFO"))).toContain("cluster_state:ok");
    const own = new Cluster([nodes[0]?.directUrl ?? ""]);
    await using lock = await opened([own], { namespace: "listening" });
    own.disconnect();
    const heard: string[] = [];
    for (const seat of [0, 5, 10]) lock.node("n1").onReleased("a", seat, writing(heard, `at ${seat}`));
    await expect.poll(() => heard).toHaveLength(3);
    heard.length = 0;
    const question = { ...wanted("a"), notifyFrom: 5 };
    await lock.node("n1").grant(question);
    await lock.node("n1").release(question);
    await expect.poll(() => heard.toSorted()).toEqual([0, 10, 5].map((seat) => `at ${seat} is told, rank 0 of 1`));
  });
});

describe("listening", () => {
  test("begins again after the connection was lost, and says so", async ({ fleet }) => {
    const { urls, nodes } = await fleet({ nodes: 1 });
    await using lock = await opened(urls, { namespace: "listening" });
    const heard: string[] = [];
    lock.node("n1").onReleased("a", 2, writing(heard, "one"));
    await expect.poll(() => heard).toEqual(["one listens"]);
    nodes[0]?.cut();
    await expect.poll(() => heard).toEqual(["one listens", "one is deaf", "one listens"]);
    // As when the node is no member any more.
    await lock.node("n1").close();
    expect(heard).toEqual(["one listens", "one is deaf", "one listens", "one is deaf"]);
  });

  test("is confirmed at once to a waiter that joins those that listen already", async ({ redis }) => {
    await using lock = await one(redis);
    const heard: string[] = [];
    lock.node("n1").onReleased("a", 2, writing(heard, "first"));
    await expect.poll(() => heard).toEqual(["first listens"]);
    lock.node("n1").onReleased("a", 2, writing(heard, "second"));
    await Promise.resolve();
    await Promise.resolve();
    expect(heard).toEqual(["first listens", "second listens"]);
  });

  test("that comes and goes many times in one turn ends with what was wanted last, and counts once", async ({ redis }) => {
    await using lock = await one(redis);
    const node = lock.node("n1");
    const heard: string[] = [];
    for (let index = 0; index < 50; index++) node.onReleased("a", 3, writing(heard, "gone"))();
    const undo = node.onReleased("a", 3, writing(heard, "here"));
    await expect.poll(() => heard).toEqual(["here listens"]);
    for (let index = 0; index < 50; index++) node.onReleased("a", 7, writing(heard, "guest"))();
    undo();
    node.onReleased("a", 3, writing(heard, "back"));
    await expect.poll(() => heard).toEqual(["here listens", "back listens"]);
    const question = { ...wanted("a"), notifyFrom: 3 };
    await node.grant(question);
    expect(await node.release(question)).toMatchObject({ listeners: 1 });
    await expect.poll(() => heard.slice(2)).toEqual(["back is told, rank 0 of 1"]);
  });
});
