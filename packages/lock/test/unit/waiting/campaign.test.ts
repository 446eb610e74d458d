// Leader election, in simulated time: one leader at a time, and a new one when the old one dies, stands
// still, resigns or is done.
import { getEventListeners } from "node:events";
import { describe, expect, vi } from "vitest";
import type { CampaignEvent } from "../../../src/protocol/events.js";
import type { Campaign, Term } from "../../../src/protocol/locker.js";
import { aborted, failure, listen } from "../../listening.js";
import { type Actor, type Story, test } from "../../simulation/story.js";

const ttlMs = 2_000;

interface Candidate extends Actor {
  /** Of each term: its token, and how it ended. */
  readonly terms: { readonly token: number; over?: unknown }[];
  /** While it leads. */
  token(): number | undefined;
  readonly campaign: Campaign;
}

function candidate(story: Story, label: string): Candidate {
  const actor = story.actor({ ttlMs, label });
  const terms: Candidate["terms"] = [];
  const campaign = actor.locker.campaign("scheduler", async (term) => {
    const told: Candidate["terms"][number] = { token: term.token };
    terms.push(told);
    await aborted(term.signal);
    told.over = [term.leads, term.signal.reason.reason];
  });
  const token = () => (terms.at(-1)?.over === undefined ? terms.at(-1)?.token : undefined);
  return { ...actor, terms, token, campaign };
}

/** The only leader of those that run, when one has a higher token than this. */
async function elected(story: Story, candidates: readonly Candidate[], above = 0): Promise<Candidate> {
  const leading = () => candidates.filter((one) => (one.token() ?? 0) > above);
  await story.until(() => leading().length > 0, "one is elected");
  expect(leading()).toHaveLength(1);
  return leading()[0] as Candidate;
}

describe("a leader", () => {
  test("L2 that is killed is followed by one other, with a higher token", async (story) => {
    const all = ["a", "b", "c"].map((label) => candidate(story, label));
    const first = await elected(story, all);
    const { locker } = story.actor();
    expect(await locker.leader("scheduler")).toMatchObject({ label: expect.stringMatching(/^[abc]$/), token: first.token() });
    first.kill();
    await elected(
      story,
      all.filter((one) => one !== first),
      first.token(),
    );
  });

  test("L1 that stands still is followed by another, learns of it when it goes on, and stands again", async (story) => {
    const all = [candidate(story, "a"), candidate(story, "b")];
    const first = await elected(story, all);
    first.process.stop();
    const second = await elected(
      story,
      all.filter((one) => one !== first),
      first.token(),
    );
    first.process.continue();
    await story.until(() => first.token() === undefined, "it learns of it");
    expect(first.terms[0]?.over).toEqual([false, expect.stringMatching(/expired|taken|unreachable/)]);
    const token = second.token();
    await second.campaign.stop();
    expect(await elected(story, all, token)).toBe(first);
  });

  test("tells everybody its address for as long as it leads, also where a node has forgotten it", async (story) => {
    const { locker } = story.actor({ ttlMs });
    const asking = story.actor().locker;
    const campaign = locker.campaign("r", ({ signal }) => aborted(signal), { label: "10.0.0.7:8080" });
    await story.until(() => campaign.term !== undefined, "it leads");
    const { token } = campaign.term as Term;
    expect(await asking.leader("r")).toMatchObject({ label: "10.0.0.7:8080", token });
    for (const node of story.nodes.slice(0, 2)) node.command("DEL", "{sim}:lock:r");
    await story.until(() => story.stored("lock", "r").every((value) => value?.endsWith("|10.0.0.7:8080")), "it is healed");
    await campaign.stop();
    expect(await asking.leader("r")).toBeNull();
  });

  test("that resigns lets another lead, without waiting for its ttl, and stands again", async (story) => {
    const all = [candidate(story, "a"), candidate(story, "b")];
    const first = await elected(story, all);
    for (let i = 0, leader = first; i < 3; i++) {
      const token = leader.token() ?? 0;
      const beganMs = story.nowMs;
      await leader.campaign.resign();
      leader = await elected(story, all, token);
      expect(story.nowMs - beganMs).toBeLessThan(ttlMs / 4);
    }
    expect(first.terms[0]?.over).toEqual([false, "released"]);
  });
});

describe("a campaign", () => {
  test("runs one routine at a time, begins again when it is done, and gives the lease back", async (story) => {
    const { locker } = story.actor();
    const terms: Term[] = [];
    let running = 0;
    const campaign = locker.campaign("daily", async (term) => {
      expect(++running).toBe(1);
      term.assertLeads();
      terms.push(term);
      await story.pass(5);
      running--;
    });
    await story.until(() => terms.length >= 3, "three terms");
    await campaign.stop();
    expect(terms.map(({ token }) => token)).toEqual([...new Set(terms.map(({ token }) => token))].toSorted((a, b) => a - b));
    expect(terms.every(({ leads, signal, resource }) => !leads && signal.aborted && resource === "daily")).toBe(true);
    expect(() => terms[0]?.assertLeads()).toThrow(/with token \d+/);
    expect(campaign.term).toBeUndefined();
    await story.eventually(() => expect(story.stored("lock", "daily")).toEqual([null, null, null, null, null]));
    expect(await locker.leader("daily")).toBeNull();
  });

  test("L1 waits for the routine before it gives a stopped term back, and leads no more meanwhile", async (story) => {
    const [one, other] = [story.actor().locker, story.actor().locker];
    let term: Term | undefined;
    const campaign = one.campaign("r", async (mine) => {
      term = mine;
      await aborted(mine.signal);
      await story.pass(300);
    });
    await story.until(() => campaign.term !== undefined, "it leads");
    const stopped = campaign.stop();
    expect([campaign.term, term?.leads]).toEqual([undefined, false]);
    await story.pass(100);
    expect((await other.tryAcquire("r")).ok).toBe(false);
    await stopped;
    expect((await other.tryAcquire("r")).ok).toBe(true);
  });

  test("goes on after what its routine throws while it leads, and says so; not what it throws because the term has ended", async (story) => {
    const { locker } = story.actor();
    const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    const mine = new Error("mine");
    let terms = 0;
    const failing = locker.campaign("r", () => {
      if (++terms < 3) throw mine;
    });
    await story.until(() => terms >= 3, "it stands again");
    const said = warned.mock.calls.map(([message]) => message);
    expect(said).toEqual(
      [1, 2].map(() => expect.stringMatching(/^the campaign for r failed while it led with token \d+: Error: mine; its/)),
    );
    using heard = listen<CampaignEvent>("campaign");
    terms = 0;
    await story.until(() => heard.events.length === 2, "it is published");
    expect(heard.events[0]).toEqual({ resource: "r", token: expect.any(Number), error: mine, goesOn: true });
    await failing.stop();
    terms = 0;
    const campaign = locker.campaign("s", async ({ signal }) => {
      terms++;
      await aborted(signal);
      throw signal.reason;
    });
    await story.until(() => campaign.term !== undefined, "it leads");
    await locker.fleet.forceRelease("s", { reason: "a test" });
    await campaign.resign();
    await story.until(() => terms >= 2, "it stands again");
    await campaign[Symbol.asyncDispose]();
    expect([heard.events.length, warned.mock.calls.length]).toEqual([2, 2]);
    warned.mockRestore();
  });

  test("ends where the nodes cannot be used, and says so, whether or not its end is looked at", async (story) => {
    const { locker } = story.actor();
    await locker.ready();
    using heard = listen<CampaignEvent>("campaign");
    const campaign = locker.campaign("r", () => {}, { ttlMs: 70_000 });
    await story.until(() => heard.events.length === 1, "it is published");
    expect(heard.events).toMatchObject([{ resource: "r", error: expect.any(RangeError), goesOn: false }]);
    expect(await failure(campaign.ended)).toBe(heard.events[0]?.error);
  });

  test("ends with its signal, and with its locker", async (story) => {
    const [holder, { locker }] = [story.actor(), story.actor()];
    await holder.locker.acquire("r", { renew: true });
    const aborter = new AbortController();
    const campaigns = ["r", "s", "t"].map((name) => locker.campaign(name, () => {}, { signal: aborter.signal }));
    // A listener for each would be taken for a leak.
    expect(getEventListeners(aborter.signal, "abort")).toHaveLength(1);
    aborter.abort();
    await Promise.all(campaigns.map(({ ended }) => ended));
    expect(getEventListeners(aborter.signal, "abort")).toEqual([]);
    const another = locker.campaign("r", () => {});
    await locker.close();
    await another.ended;
  });

  test("refuses what cannot be right before any I/O", async (story) => {
    const { locker } = story.actor();
    expect(() => locker.campaign("", () => {})).toThrow();
    expect(() => locker.campaign("r", undefined as never)).toThrow("campaign needs a routine to run");
    expect(() => locker.campaign("r", () => {}, { waitMs: 7 } as never)).toThrow(TypeError);
    expect(() => locker.campaign("r", () => {}, { ttlMs: 0 })).toThrow(RangeError);
    expect(() => locker.campaign("r", () => {}, { label: 7 } as never)).toThrow(TypeError);
    for (const label of ["", "x".repeat(257), "\ud800"]) expect(() => locker.campaign("r", () => {}, { label })).toThrow(RangeError);
  });
});
