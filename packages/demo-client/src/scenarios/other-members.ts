// Half of the workers are configured with n1, n2, n3, the other half with n1, n2, n4: a replacement
// that reached only half of them, or a typo. Each list has a majority without the other's. Votes
// count for the members that the nodes have stored.
import type { ActRun, Differing, Scenario } from "../engine/act-run.js";
import type { Worker } from "../engine/worker-handle.js";
import type { Resource } from "../worker/protocol.js";
import { codeOf } from "./late-write.js";
import { PrivateFleet } from "./private-fleet.js";

const actors = ["worker 1", "worker 2", "lock"];
/** No lease may run out here before it was looked at. */
const ttlMs = 30_000;

interface Prepared {
  readonly job: Resource;
  readonly right: Worker;
  readonly wrong: Worker;
  /** Each worker's own list, by its own way. */
  readonly lists: { readonly right: readonly string[]; readonly wrong: readonly string[] };
}

async function prepare(act: ActRun): Promise<Prepared> {
  const fleet = await PrivateFleet.start(act);
  const network = await fleet.networkOf("worker 1");
  const [n1 = "", n2 = "", , n4 = ""] = fleet.urls;
  const lists = { right: network.redisUrls.slice(0, 3), wrong: [n1, n2, n4] };
  const gateway: Differing = await fleet.gateway(3);
  const config = { ...gateway, maxTtlMs: ttlMs };
  // The first one founds the fleet of n1, n2 and n3.
  const right = await act.worker("worker 1", { ...config, redisUrls: lists.right });
  act.step("breaks", "lock", { text: "worker 2 is given another server than worker 1 as its third node" });
  const wrong = await act.worker("worker 2", { ...config, redisUrls: lists.wrong });
  await network.loses("n2");
  return { job: act.resource("jobs/billing"), right, wrong, lists };
}

async function withMembers(act: ActRun): Promise<void> {
  const { job, right, wrong } = await prepare(act);
  const older = await right.acquires(job, { ttlMs });
  act.expect("worker 2 is refused", codeOf(await wrong.tries(job)), "LOCK_HELD");
  act.expect("worker 1 is still the holder", await right.believesToHold(job));
  await right.looksAt(job);
  await right.writes(job, { run: "Monday", by: right.name });
  await right.releases(job);
  const newer = await wrong.acquires(job);
  act.expect("worker 2 is next, with a greater token", newer.token > older.token);
  const { document } = await wrong.looksAt(job);
  act.expect("it sees what worker 1 has written", document?.by, right.name);
}

async function withoutMembers(act: ActRun): Promise<void> {
  const { job, right, wrong, lists } = await prepare(act);
  const lock = { ttlMs, nodeTimeoutMs: 5_000 };
  await right.takesPlainLock(job, { ...lock, urls: lists.right });
  await wrong.takesPlainLock(job, { ...lock, urls: lists.wrong });
  const both = [await right.believesToHold(job), await wrong.believesToHold(job)];
  act.expectDamage("each has a majority of its own list: two holders", both, [true, true]);
}

export const otherMembers: Scenario = {
  name: "other-members",
  about: "half of the workers are configured with another node in the place of a member",
  acts: [
    { title: "with the members that the nodes have stored", actors, route: "gateway", play: withMembers },
    { title: "control: Redlock, which counts any node of its list", actors, route: "gateway", play: withoutMembers },
  ],
  proven:
    "Two lists of nodes can each have a majority. Votes count for the members that the nodes have stored, so one list does; where each counts its own, two hold the lock.",
};
