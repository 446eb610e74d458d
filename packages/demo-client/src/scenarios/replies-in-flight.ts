// The nodes granted the lock, and their answers were on the way when the process stopped. When it
// goes on it reads five grants of a lease that ran out long ago.
import type { ActRun, Scenario } from "../engine/act-run.js";
import type { Worker } from "../engine/worker-handle.js";
import { codeOf } from "./late-write.js";
import { type Network, PrivateFleet } from "./private-fleet.js";

// Longer than worker 1 stands still: it gets the answers, and only the time makes them useless.
const NODE_TIMEOUT_MS = 60_000;

interface Parts {
  readonly one: Worker;
  readonly two: Worker;
  /** Of worker 1. */
  readonly network: Network;
  readonly fleet: PrivateFleet;
}

async function setUp(act: ActRun): Promise<Parts> {
  const fleet = await PrivateFleet.start(act);
  const network = await fleet.networkOf("worker 1");
  const { redisUrls } = network;
  const one = await act.worker("worker 1", { redisUrls, nodeTimeoutMs: NODE_TIMEOUT_MS });
  const two = await act.worker("worker 2", { redisUrls: fleet.urls, ...(await fleet.gateway()) });
  return { one, two, network, fleet };
}

/** After worker 1 has asked: the nodes answer, and it stops before it has read the answers. */
async function stopBeforeItReads(act: ActRun, { one, network: { proxies } }: Parts): Promise<void> {
  await Promise.all(proxies.map((proxy) => proxy.until(({ replies }) => replies.waitingBytes > 0, NODE_TIMEOUT_MS)));
  act.step("remarks", "lock", { text: "all five nodes have granted; their answers are on the way" });
  await one.isStopped();
  for (const proxy of proxies) proxy.deliver();
}

async function withPalisade(act: ActRun): Promise<void> {
  const parts = await setUp(act);
  const { one, two, network } = parts;
  const paper = act.resource("papers/3");
  for (const proxy of network.proxies) proxy.holdReplies();
  const answer = one.tries(paper);
  await stopBeforeItReads(act, parts);
  await two.acquires(paper, { ttlMs: 30_000 });
  one.wakesUp();
  act.expect("worker 1 is not given a lease that is over", codeOf(await answer), "LOCK_TOO_SLOW");
  act.expect("worker 2 still holds it", await two.believesToHold(paper));
}

async function timeIgnored(act: ActRun): Promise<void> {
  const parts = await setUp(act);
  const { one, two, network, fleet } = parts;
  const paper = act.resource("papers/3");
  const lock = { ttlMs: act.ttlMs, elapsedTime: "ignored", nodeTimeoutMs: NODE_TIMEOUT_MS } as const;
  const lockOfOne = { ...lock, urls: network.redisUrls };
  // Connected before its network breaks.
  await one.connectsPlainLock(lockOfOne);
  for (const proxy of network.proxies) proxy.holdReplies();
  const taken = one.takesPlainLock(paper, lockOfOne);
  await stopBeforeItReads(act, parts);
  await two.waitsForPlainLock(paper, { ...lock, ttlMs: 30_000, urls: fleet.urls });
  one.wakesUp();
  act.expectDamage("worker 1 takes the old grants for a lease", await taken);
  act.expectDamage("worker 2 holds it as well: two holders", await two.believesToHold(paper));
}

export const repliesInFlight: Scenario = {
  name: "replies-in-flight",
  about: "the grants are read after the lease has run out",
  acts: [
    { title: "with Palisade", actors: ["worker 1", "worker 2", "lock"], route: "gateway", play: withPalisade },
    {
      title: "control: Redlock that does not look at the time",
      actors: ["worker 1", "worker 2", "lock"],
      route: "postgres",
      play: timeIgnored,
    },
  ],
  proven:
    "Grants that are read too late make no lease: the time counts from before the question left. Without that look at the clock there are two holders.",
};
