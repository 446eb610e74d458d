// The nodes granted the lock, and their answers were on the way when the process stopped. It wakes up to five grants of a lease that ran out long ago.

import type { Actor } from "../actor.js";
import { PrivateFleet, type Way } from "../private-fleet.js";
import type { Scenario } from "../scenario.js";
import type { Story } from "../story.js";

const patienceMs = 60_000;

interface Scene {
  readonly one: Actor;
  readonly two: Actor;
  readonly way: Way;
  readonly fleet: PrivateFleet;
}

async function setUp(story: Story): Promise<Scene> {
  const fleet = await PrivateFleet.start(story);
  const way = await fleet.wayOf("worker 1");
  // More patient with a node than it will stand still: the answers are waited for, and only the time tells that they are of no use.
  const one = await story.worker("worker 1", { ...way.surroundings, nodeTimeoutMs: patienceMs });
  const two = await story.worker("worker 2", { redisUrls: fleet.urls, ...(await fleet.gateway()) });
  return { one, two, way, fleet };
}

/** Worker 1 asks; the nodes answer; it stops before it has read the answers. */
async function stopsBeforeItReads<T>(story: Story, { one, way }: Scene, ask: () => Promise<T>): Promise<Promise<T>[]> {
  for (const proxy of way.proxies) proxy.holdReplies();
  const asked = ask();
  await Promise.all(way.proxies.map((proxy) => proxy.until(({ replies }) => replies.waitingBytes > 0, patienceMs)));
  story.step("remarks", "lock", { text: "all five nodes have granted; their answers are on the way" });
  await one.isStopped();
  for (const proxy of way.proxies) proxy.deliver();
  return [asked];
}

async function withPalisade(story: Story): Promise<void> {
  const scene = await setUp(story);
  const { one, two } = scene;
  const paper = story.resource("papers/3");
  const [asked] = await stopsBeforeItReads(story, scene, () => one.tries(paper));
  await two.acquires(paper, { ttlMs: 30_000 });
  one.wakesUp();
  const answer = await asked;
  const told = answer === undefined || answer.ok ? "granted" : answer.code;
  story.expect("worker 1 is not given a lease that is over", told, "LOCK_TOO_SLOW");
  story.expect("worker 2 still holds it", await two.believesToHold(paper));
}

async function timeIgnored(story: Story): Promise<void> {
  const scene = await setUp(story);
  const { one, two, way, fleet } = scene;
  const paper = story.resource("papers/3");
  const lock = { ttlMs: story.ttlMs, elapsedTime: "ignored", nodeTimeoutMs: 60_000 } as const;
  // Connected before its network breaks.
  await one.connectsClassic({ ...lock, urls: way.surroundings.redisUrls });
  const [asked] = await stopsBeforeItReads(story, scene, () => one.takesClassic(paper, { ...lock, urls: way.surroundings.redisUrls }));
  await two.waitsForClassic(paper, { ...lock, ttlMs: 30_000, urls: fleet.urls });
  one.wakesUp();
  story.expect("worker 1 takes the old grants for a lease", await asked);
  story.expect("worker 2 holds it as well: two holders", await two.believesToHold(paper));
}

export const repliesInFlight: Scenario = {
  name: "replies-in-flight",
  about: "the grants are read after the lease has run out",
  acts: [
    { title: "with Palisade", actors: ["worker 1", "worker 2", "lock"], door: "gateway", play: withPalisade },
    {
      title: "control: Redlock that does not look at the time",
      actors: ["worker 1", "worker 2", "lock"],
      door: "postgres",
      play: timeIgnored,
    },
  ],
  proven:
    "Grants that are read too late make no lease: the time counts from before the question left. Without that look at the clock there are two holders.",
};
