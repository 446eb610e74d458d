// What several stories share: workers that all do the same read-decide-write at the same moment, under a lock or under none. Decides no ending.
import type { Actor } from "../actor.js";
import type { ClassicOptions } from "../classic-lock.js";
import type { Resource, Story } from "../story.js";
import type { Document } from "../worker-protocol.js";

const leaseMs = 30_000;

/** What keeps the rivals apart. */
export type Guard = "nothing" | "one Redis" | "Redlock" | "Palisade";

export interface Contest {
  readonly resource: Resource;
  readonly rivals: readonly Actor[];
  readonly guard: Guard;
  /** From what is stored to what shall be; undefined when there is nothing to do. */
  readonly decide: (stored: Document | null, rival: Actor) => Document | undefined;
}

/** How many found something to do, and of how many it was stored: a lock that lets two in shows in the first, also where the fence keeps the second right. */
export interface Tally {
  readonly acted: number;
  readonly stored: number;
}

export async function contest(story: Story, { resource, rivals, guard, decide }: Contest): Promise<Tally> {
  const acts = async (rival: Actor, stored: Document | null): Promise<"did nothing" | "refused" | "stored"> => {
    const document = decide(stored, rival);
    if (document === undefined) {
      story.step("remarks", rival.name, { text: "finds nothing left to do" });
      return "did nothing";
    }
    const written = await rival.writes(resource, document);
    return written.ok ? "stored" : "refused";
  };
  if (guard === "nothing") {
    // All have read before the first writes: the moment that a lock is there to prevent.
    const seen = await Promise.all(rivals.map((rival) => rival.looksAt(resource)));
    return count(await Promise.all(rivals.map((rival, index) => acts(rival, seen[index]?.document ?? null))));
  }
  return count(
    await Promise.all(
      rivals.map(async (rival) => {
        await enter(story, { rival, resource, guard });
        const acted = await acts(rival, (await rival.looksAt(resource)).document);
        await leave(rival, { resource, guard });
        return acted;
      }),
    ),
  );
}

async function enter(
  story: Story,
  { rival, resource, guard }: { readonly rival: Actor; readonly resource: Resource; readonly guard: Guard },
): Promise<void> {
  // No lease may run out in these stories, however slow the machine: what they are about is who gets in.
  if (guard === "Palisade") await rival.acquires(resource, { ttlMs: leaseMs });
  else await rival.waitsForClassic(resource, classicLock(story, guard));
}

async function leave(rival: Actor, { resource, guard }: { readonly resource: Resource; readonly guard: Guard }): Promise<void> {
  if (guard === "Palisade") await rival.releases(resource);
  else await rival.releasesClassic(resource, "owner");
}

function classicLock({ stage }: Story, guard: Guard): ClassicOptions {
  return { urls: guard === "one Redis" ? stage.redisUrls.slice(0, 1) : stage.redisUrls, ttlMs: leaseMs, nodeTimeoutMs: 5_000 };
}

function count(deeds: readonly ("did nothing" | "refused" | "stored")[]): Tally {
  return { acted: deeds.filter((deed) => deed !== "did nothing").length, stored: deeds.filter((deed) => deed === "stored").length };
}
