// One node restarts without its memory while the lock is held. It would grant again what it has granted already, and with it the next three make a majority.
import { PrivateFleet } from "../private-fleet.js";
import type { Scenario } from "../scenario.js";
import type { Story } from "../story.js";

const actors = ["worker 1", "worker 2", "lock"];

async function forgets(story: Story, fleet: PrivateFleet): Promise<void> {
  await fleet.node("n3").restart({ forget: true });
  story.step("breaks", "lock", { text: "n3 restarts, and has forgotten everything" });
}

async function withQuarantine(story: Story): Promise<void> {
  const ttlMs = 30_000;
  const fleet = await PrivateFleet.start(story);
  const way = await fleet.wayOf("worker 1");
  const one = await story.worker("worker 1", { ...way.surroundings, maxTtlMs: ttlMs });
  const key = story.resource("keys/master");

  await way.losesSightOf("n4", "n5");
  const older = await one.acquires(key, { ttlMs });
  await forgets(story, fleet);
  const two = await story.worker("worker 2", { redisUrls: fleet.urls, maxTtlMs: ttlMs });
  const early = await two.tries(key);
  story.expect("worker 2 is refused", early.ok, false);
  story.expect("n3 has no vote", early.ok ? "granted" : early.quarantined, 1);
  story.expect("worker 1 is still the holder", await one.believesToHold(key));
  await one.releases(key);
  const newer = await two.acquires(key);
  story.expect("worker 2 is next, with a greater token, from the four others", newer.token > older.token);
}

async function withoutQuarantine(story: Story): Promise<void> {
  const fleet = await PrivateFleet.start(story);
  const way = await fleet.wayOf("worker 1");
  const one = await story.worker("worker 1", way.surroundings);
  const key = story.resource("keys/master");
  const lock = { ttlMs: 30_000, nodeTimeoutMs: 5_000 };

  await way.losesSightOf("n4", "n5");
  const two = await story.worker("worker 2", { redisUrls: fleet.urls });
  await one.takesClassic(key, { ...lock, urls: way.surroundings.redisUrls });
  story.expect("worker 2 does not get it", await two.takesClassic(key, { ...lock, urls: fleet.urls }), false);
  await forgets(story, fleet);
  await two.waitsForClassic(key, { ...lock, urls: fleet.urls });
  const both = [await one.believesToHold(key), await two.believesToHold(key)];
  story.expect("n3 gave the lock away twice: two holders", both, [true, true]);
}

export const nodeAmnesia: Scenario = {
  name: "node-amnesia",
  about: "a node restarts empty while the lock is held",
  acts: [
    { title: "with quarantine", actors, door: "gateway", play: withQuarantine },
    { title: "control: Redlock, which believes the empty node", actors, door: "gateway", play: withoutQuarantine },
  ],
  proven: "A node that may have forgotten a grant has no vote until that grant is over. Where it votes at once, two hold the lock.",
};
