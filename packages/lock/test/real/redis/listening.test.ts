// Who is told of a release by one node: the first in the queue of those that wait, for which the
// lock is kept for a moment, and the next and the last.
import { describe, expect, type SharedRedis, test } from "@palisade/testkit/vitest";
import type { ReleaseListener } from "../../../src/protocol/node.js";
import { fingerprintOf } from "../../../src/protocol/verbs.js";
import { asking, type Opened, opened, TICKET, waiting } from "./opened-fleet.js";

/** Writes down what is heard, in words. */
function writing(heard: string[], who: string): ReleaseListener {
  return {
    listening: () => heard.push(`${who} listens`),
    deaf: () => heard.push(`${who} is deaf`),
    released: (otherMs) => heard.push(otherMs === 0 ? `${who} is first` : `${who} is behind`),
  };
}

function one({ urls, namespace }: SharedRedis): Promise<Opened> {
  return opened([urls[0] ?? ""], { namespace });
}

/** So many processes that listen for "a". */
async function processes(redis: SharedRedis, names: readonly string[]) {
  const heard: string[] = [];
  const locks = await Promise.all(names.map(() => one(redis)));
  for (const [i, name] of names.entries()) locks[i]?.node("n1").onReleased(TICKET, writing(heard, name));
  await expect.poll(() => heard).toHaveLength(names.length);
  heard.length = 0;
  const nodes = locks.map((lock) => lock.node("n1"));
  return { heard, nodes, locks, [Symbol.asyncDispose]: async () => void (await Promise.all(locks.map(({ fleet }) => fleet.close()))) };
}

const held = { kind: "held", place: expect.any(Number) };

describe("a release", () => {
  test("tells the one that has waited longest, the one behind it and the last, however they asked", async ({ redis }) => {
    await using crowd = await processes(redis, ["holder", "late", "early", "middle", "between"]);
    const [holder, late, early, middle, between] = crowd.nodes;
    const lease = asking("a");
    await holder?.ask("grant", lease);
    expect(await late?.ask("claim", { ...asking("a"), ...waiting(1_000) })).toMatchObject(held);
    expect(await early?.ask("claim", { ...asking("a"), ...waiting(3_000) })).toMatchObject(held);
    expect(await middle?.ask("claim", { ...asking("a"), ...waiting(2_000) })).toMatchObject({ ...held, place: 2 });
    expect(await between?.ask("claim", { ...asking("a"), ...waiting(1_500) })).toMatchObject({ ...held, place: 3 });
    expect(await holder?.ask("release", { ...lease, tells: true })).toMatchObject({ kind: "released", listeners: 4 });
    await expect.poll(() => crowd.heard.toSorted()).toEqual(["early is first", "late is behind", "middle is behind"]);
  });

  test("W1 says what each of those that it tells had asked last, by the clock of each", async ({ redis }) => {
    await using crowd = await processes(redis, ["holder", "first", "next"]);
    const [holder, first, next] = crowd.nodes;
    const told: (readonly [string, number | undefined])[] = [];
    for (const [i, node] of [first, next].entries())
      node?.onReleased(TICKET, { ...writing([], ""), released: (otherMs, askedAtMs) => told.push([`${i} ${otherMs}`, askedAtMs]) });
    const lease = asking("a");
    await holder?.ask("grant", lease);
    // So far ahead that the node goes by its own clock.
    const [longer, shorter] = [
      { ...waiting().wait, sinceMs: Date.now() + 900_000, waitedMs: 2_000 },
      { ...waiting().wait, sinceMs: Date.now() + 950_000, waitedMs: 1_000 },
    ];
    await first?.ask("claim", { ...asking("a"), wait: longer });
    await next?.ask("claim", { ...asking("a"), wait: shorter });
    await holder?.ask("release", { ...lease, tells: true });
    await expect
      .poll(() => told.toSorted())
      .toEqual([
        ["0 0", longer.sinceMs + 2_000],
        ["1 40", shorter.sinceMs + 1_000],
      ]);
  });

  test("keeps the lock for the first in the queue, for a moment", async ({ redis }) => {
    await using lock = await one(redis);
    const node = lock.node("n1");
    const heard: string[] = [];
    node.onReleased(TICKET, writing(heard, "it"));
    await expect.poll(() => heard).toEqual(["it listens"]);
    let stories = 0;
    const story = async () => {
      const resource = `r${++stories}`;
      const lease = asking(resource);
      await node.ask("grant", lease);
      await node.ask("claim", { ...asking(resource), ...waiting() });
      return Promise.all([
        node.ask("release", { ...lease, tells: true }),
        node.ask("grant", asking(resource)),
        node.ask("inspect", { resources: [resource] }),
        node.ask("claim", { ...asking(resource), ...waiting() }),
      ]);
    };
    // They travel one behind the other. If the server stands still between them, once more.
    await expect
      .poll(story)
      .toMatchObject([
        { kind: "released" },
        { kind: "held", isReserved: true, holder: "the next in line" },
        { kind: "seen", holder: null, isReserved: true },
        { kind: "granted" },
      ]);
  });

  test("W1 a lock that is kept for a process that does not come is free after a moment", async ({ redis }) => {
    await using crowd = await processes(redis, ["holder", "first"]);
    const [holder, first] = crowd.nodes;
    const lease = asking("a");
    await holder?.ask("grant", lease);
    await first?.ask("claim", { ...asking("a"), ...waiting() });
    await holder?.ask("release", { ...lease, tells: true });
    await expect.poll(async () => (await holder?.ask("grant", asking("a")))?.kind, { interval: 1 }).toBe("granted");
  });

  test("W1 passes over a process that does not listen any more", async ({ fleet }) => {
    const { nodes, urls } = await fleet({ nodes: 1 });
    const namespace = "listening";
    await using gone = await opened(urls, { namespace });
    await using lock = await opened(urls, { namespace });
    const heard: string[] = [];
    gone.node("n1").onReleased(TICKET, writing(heard, "gone"));
    lock.node("n1").onReleased(TICKET, writing(heard, "next"));
    await expect.poll(() => heard.toSorted()).toEqual(["gone listens", "next listens"]);
    const lease = asking("a");
    await lock.node("n1").ask("grant", lease);
    await gone.node("n1").ask("claim", { ...asking("a"), ...waiting(1_000) });
    await lock.node("n1").ask("claim", { ...asking("a"), ...waiting() });
    await gone.fleet.close();
    await expect.poll(() => nodes[0]?.cli("PUBSUB", "CHANNELS", "*")).toHaveLength(1);
    expect(await lock.node("n1").ask("release", { ...lease, tells: true })).toMatchObject({ listeners: 2 });
    await expect.poll(() => heard.at(-1)).toBe("next is first");
  });

  test("W1 tells one behind that listens, where the second in the queue has died", async ({ fleet }) => {
    const { nodes, urls } = await fleet({ nodes: 1 });
    const namespace = "listening";
    await using gone = await opened(urls, { namespace });
    await using first = await opened(urls, { namespace });
    await using third = await opened(urls, { namespace });
    await using last = await opened(urls, { namespace });
    const heard: string[] = [];
    for (const [who, lock] of Object.entries({ gone, first, third, last })) lock.node("n1").onReleased(TICKET, writing(heard, who));
    await expect.poll(() => heard).toHaveLength(4);
    const lease = asking("a");
    await first.node("n1").ask("grant", lease);
    await first.node("n1").ask("claim", { ...asking("a"), ...waiting(3_000) });
    await gone.node("n1").ask("claim", { ...asking("a"), ...waiting(2_000) });
    await third.node("n1").ask("claim", { ...asking("a"), ...waiting(1_000) });
    await last.node("n1").ask("claim", { ...asking("a"), ...waiting(500) });
    await gone.fleet.close();
    await expect.poll(() => nodes[0]?.cli("PUBSUB", "CHANNELS", "*")).toHaveLength(3);
    await first.node("n1").ask("release", { ...lease, tells: true });
    await expect
      .poll(() =>
        heard
          .slice(4)
          .filter((line) => !line.startsWith("gone"))
          .toSorted(),
      )
      .toEqual(["first is first", "last is behind", "third is behind"]);
  });

  test("W1 takes the ticket that won along where the lock has another owner, and passes on what is kept for it", async ({ redis }) => {
    await using crowd = await processes(redis, ["winner", "next"]);
    const [winner, next] = crowd.nodes;
    const [late, won] = [asking("a"), { ...asking("a"), owner: "w".repeat(22) }];
    await next?.ask("grant", late);
    await winner?.ask("claim", { ...asking("a"), ...waiting(1_000) });
    // Other nodes have granted it; this one hears of the release before late.
    expect(await winner?.ask("release", { ...won, tells: true, ticket: TICKET })).toMatchObject({ kind: "absent" });
    expect(await next?.ask("release", { ...late, tells: true })).toMatchObject({ listeners: 0 });
    await next?.ask("grant", late);
    await winner?.ask("claim", { ...asking("a"), ...waiting(1_000) });
    await next?.ask("claim", { ...asking("a"), ...waiting() });
    await Promise.all([next?.ask("release", { ...late, tells: true }), winner?.ask("release", { ...won, tells: true, ticket: TICKET })]);
    await expect.poll(() => crowd.heard.filter((line) => line.endsWith("first")).toSorted()).toEqual(["next is first", "winner is first"]);
  });

  test("by a lost acquisition tells nobody", async ({ redis }) => {
    await using crowd = await processes(redis, ["holder", "waiter"]);
    const [holder, waiter] = crowd.nodes;
    const lease = asking("a");
    await holder?.ask("grant", lease);
    await waiter?.ask("claim", { ...asking("a"), ...waiting() });
    expect(await holder?.ask("release", { ...lease, tells: false })).toMatchObject({ kind: "released", listeners: 0 });
    const again = asking("a");
    await holder?.ask("grant", again);
    await holder?.ask("release", { ...again, tells: true });
    await expect.poll(() => crowd.heard).toEqual(["waiter is first"]);
  });

  test("by force is told as well", async ({ redis }) => {
    await using crowd = await processes(redis, ["holder", "waiter"]);
    const [holder, waiter] = crowd.nodes;
    const lease = asking("a");
    const raise = { resources: ["a"], token: 7, holder: fingerprintOf(lease.owner) };
    await holder?.ask("grant", lease);
    await waiter?.ask("claim", { ...asking("a"), ...waiting() });
    expect(await holder?.ask("raise", { ...raise, holder: null })).toMatchObject({ kind: "kept" });
    expect(await holder?.ask("raise", raise)).toMatchObject({ removed: expect.stringMatching(/^label/) });
    await expect.poll(() => crowd.heard).toEqual(["waiter is first"]);
    expect(await holder?.ask("raise", raise)).toMatchObject({ removed: null });
  });
});

describe("a ticket", () => {
  test("W1 of a caller that gives up is gone, and what was kept for it goes to the next one", async ({ redis }) => {
    await using crowd = await processes(redis, ["quitter", "next"]);
    const [node, next] = crowd.nodes;
    const lease = asking("a");
    await node?.ask("grant", lease);
    await node?.ask("claim", { ...asking("a"), ...waiting(1_000) });
    await next?.ask("claim", { ...asking("a"), ...waiting() });
    await Promise.all([node?.ask("release", { ...lease, tells: true }), node?.ask("leave", { resources: ["a"], ticket: TICKET })]);
    await expect.poll(() => crowd.heard.filter((line) => line.endsWith("first")).toSorted()).toEqual(["next is first", "quitter is first"]);
    const again = asking("b");
    await next?.ask("grant", again);
    await node?.ask("claim", { ...asking("b"), ...waiting() });
    await node?.ask("leave", { resources: ["b"], ticket: TICKET });
    expect(await next?.ask("release", { ...again, tells: true })).toMatchObject({ listeners: 0 });
  });

  test("W1 for several resources has a place in the queue of each; what is free is kept for it where it is the first in all", async ({
    redis,
  }) => {
    await using crowd = await processes(redis, ["both", "next"]);
    const [node, next] = crowd.nodes;
    const [a, b] = [asking("a"), asking("b")];
    await node?.ask("grant", a);
    await node?.ask("grant", b);
    const set = { ...asking(["a", "b"]), ...waiting(1_000) };
    expect(await node?.ask("claim", set)).toMatchObject({ ...held, resource: "a", place: 1 });
    expect(await next?.ask("claim", { ...asking("a"), ...waiting(500) })).toMatchObject({ ...held, place: 2 });
    await node?.ask("release", { ...a, tells: true });
    await expect.poll(() => crowd.heard.toSorted()).toEqual(["both is behind", "next is behind"]);
    expect(await next?.ask("grant", asking("a"))).toMatchObject({ kind: "held", isReserved: true });
    await node?.ask("release", { ...b, tells: true });
    await expect.poll(() => crowd.heard).toContain("both is first");
    // It does not come. A part that was not kept in vain is kept again at once.
    const [again, other] = [asking("a"), asking("b")];
    for (const each of [again, other]) await expect.poll(async () => (await node?.ask("grant", each))?.kind).toBe("granted");
    await node?.ask("claim", set);
    crowd.heard.length = 0;
    await node?.ask("release", { ...again, tells: true });
    await expect.poll(() => crowd.heard).toContain("both is behind");
  });

  test("W1 for several resources is passed over where it is not the first in all, and where a part was kept a moment ago", async ({
    redis,
  }) => {
    await using crowd = await processes(redis, ["both", "next", "other"]);
    const [node, next, other] = crowd.nodes;
    const [a, b] = [asking("a"), asking("b")];
    await node?.ask("grant", a);
    await node?.ask("grant", b);
    await other?.ask("claim", { ...asking("b"), ...waiting(9_000) });
    await node?.ask("claim", { ...asking(["a", "b"]), ...waiting(8_000) });
    const claim = { ...asking("a"), wait: { ...waiting(500).wait, reserveMs: 5_000 } };
    await next?.ask("claim", claim);
    await node?.ask("release", { ...a, tells: true });
    await expect.poll(() => crowd.heard).toContain("next is first");
    await other?.ask("leave", { resources: ["b"], ticket: TICKET });
    expect(await next?.ask("claim", claim)).toMatchObject({ kind: "granted" });
    await next?.ask("claim", { ...claim, ...asking("a") });
    crowd.heard.length = 0;
    await next?.ask("release", { ...claim, tells: true });
    await expect.poll(() => crowd.heard).toContain("both is behind");
    expect(crowd.heard).not.toContain("next is first");
    // Until that is over.
    await expect.poll(async () => (await next?.ask("claim", claim))?.kind, { timeout: 10_000 }).toBe("granted");
    await next?.ask("claim", { ...claim, ...asking("a") });
    crowd.heard.length = 0;
    await next?.ask("release", { ...claim, tells: true });
    await expect.poll(() => crowd.heard).toContain("next is first");
  });

  test("is served by the time that clients give, if their clocks are about right, and else by the node's", async ({ redis }) => {
    await using crowd = await processes(redis, ["holder", "fast", "slow", "far"]);
    const [holder, fast, slow, far] = crowd.nodes;
    // By the node's clock "slow" is before "fast" by 10 ms, by their own behind it by 20: that
    // counts while a request takes less than 20 ms. If one takes longer, once more.
    const story = async () => {
      crowd.heard.length = 0;
      const lease = asking("a");
      await expect.poll(async () => (await holder?.ask("grant", lease))?.kind).toBe("granted");
      const now = Date.now();
      await slow?.ask("claim", { ...asking("a"), wait: { ...waiting().wait, sinceMs: now - 10, waitedMs: Date.now() - now + 40 } });
      await fast?.ask("claim", { ...asking("a"), wait: { ...waiting().wait, sinceMs: now - 30, waitedMs: Date.now() - now + 30 } });
      await far?.ask("claim", { ...asking("a"), wait: { ...waiting().wait, sinceMs: now - 86_400_000, waitedMs: 0 } });
      await holder?.ask("release", { ...lease, tells: true });
      await expect.poll(() => crowd.heard).toHaveLength(3);
      const told = crowd.heard.toSorted();
      await Promise.all([slow, fast, far].map((node) => node?.ask("leave", { resources: ["a"], ticket: TICKET })));
      return told;
    };
    await expect.poll(story, { timeout: 20_000 }).toEqual(["far is behind", "fast is first", "slow is behind"]);
  });

  test("W1 of a process that asks no more is forgotten after a while, and a queue has an end", async ({ fleet }) => {
    const { nodes, urls } = await fleet({ nodes: 1 });
    await using lock = await opened(urls, { namespace: "listening" });
    const node = lock.node("n1");
    await node.ask("grant", asking("a"));
    expect(await node.ask("claim", { ...asking("a"), ...waiting() })).toMatchObject(held);
    const [queue, keys] = ["{listening}:queue:a", await nodes[0]?.cli("KEYS", "{listening}:ticket:*")];
    for (const key of [queue, ...(keys as string[])]) {
      expect(Number(await nodes[0]?.cli("PTTL", key))).toBeGreaterThan(80_000);
    }
    const crowd = Array.from({ length: 4_095 }, (_, i) => [`${Date.now()}`, `process ${i}`]).flat();
    await nodes[0]?.cli("ZADD", queue, ...crowd);
    expect(await node.ask("claim", { ...asking("a"), ...waiting() })).toMatchObject(held);
    const refused = await node.ask("claim", { ...asking("a"), ...waiting(0, ":other") });
    expect(refused).toMatchObject({ kind: "held" });
    expect(refused).not.toHaveProperty("place");
  });

  test("W1 that is still there is known to a look", async ({ redis }) => {
    await using crowd = await processes(redis, ["one"]);
    const [node] = crowd.nodes;
    const lease = asking("a");
    await node?.ask("grant", lease);
    await node?.ask("claim", { ...asking("a"), ...waiting() });
    const look = () => node?.ask("inspect", { resources: ["a"], ticket: TICKET });
    expect(await look()).not.toHaveProperty("isForgotten");
    await node?.ask("leave", { resources: ["a"], ticket: TICKET });
    expect(await look()).toMatchObject({ isForgotten: true });
  });
});

describe("listening", () => {
  test("begins again after the connection was lost, and says so", async ({ fleet }) => {
    const { urls, nodes } = await fleet({ nodes: 1 });
    await using lock = await opened(urls, { namespace: "listening" });
    const heard: string[] = [];
    lock.node("n1").onReleased(TICKET, writing(heard, "one"));
    await expect.poll(() => heard).toEqual(["one listens"]);
    nodes[0]?.cut();
    await expect.poll(() => heard).toEqual(["one listens", "one is deaf", "one listens"]);
    // As when the node is no member any more.
    await lock.node("n1").close();
    expect(heard).toEqual(["one listens", "one is deaf", "one listens", "one is deaf"]);
  });

  test("is one subscription for all resources of a process, for as long as it lives", async ({ fleet }) => {
    const { urls, nodes } = await fleet({ nodes: 1 });
    await using lock = await opened(urls, { namespace: "listening" });
    const node = lock.node("n1");
    const heard: string[] = [];
    node.onReleased(TICKET, writing(heard, "gone"));
    await expect.poll(() => heard).toEqual(["gone listens"]);
    for (let index = 0; index < 50; index++) node.onReleased(`:${index}`, writing([], "gone"))();
    node.onReleased(":b", writing(heard, "second"));
    expect(heard).toEqual(["gone listens", "second listens"]);
    const stats = String(await nodes[0]?.cli("INFO", "commandstats"));
    expect(stats).toMatch(/cmdstat_subscribe:calls=1,/);
    expect(stats).not.toMatch(/cmdstat_unsubscribe/);
  });

  test("W1 anew replaces a connection that may be dead", async ({ fleet }) => {
    const { urls } = await fleet({ nodes: 1 });
    await using lock = await opened(urls, { namespace: "listening" });
    const node = lock.node("n1");
    const heard: string[] = [];
    node.onReleased(TICKET, writing(heard, "one"));
    await expect.poll(() => heard).toEqual(["one listens"]);
    node.listenAnew();
    await expect.poll(() => heard).toEqual(["one listens", "one is deaf", "one listens"]);
    const lease = asking("a");
    await node.ask("grant", lease);
    await node.ask("claim", { ...asking("a"), ...waiting() });
    await node.ask("release", { ...lease, tells: true });
    await expect.poll(() => heard.at(-1)).toBe("one is first");
  });
});
