// Leader election: one leader at a time, a new one when the old one dies, stands still, resigns or
// is done; with real processes and signals.
import { type ChildProcess, fork } from "node:child_process";
import { getEventListeners, once } from "node:events";
import type { Term } from "@palisade/lock";
import { aborted, test as base, describe, expect, failure, until } from "./lock-test.js";

interface Told {
  readonly kind: "leads" | "over";
  readonly token: number;
  readonly leads?: boolean;
  readonly reason?: string;
}

class Candidate {
  readonly told: Told[] = [];
  readonly process: ChildProcess;

  constructor(options: object) {
    const program = new URL("../../.build/test/real/campaign-process.js", import.meta.url);
    this.process = fork(program, [JSON.stringify(options)]);
    this.process.on("message", (told) => this.told.push(told as Told));
  }

  get token(): number | undefined {
    const last = this.told.at(-1);
    return last?.kind === "leads" ? last.token : undefined;
  }
}

const test = base.extend("candidates", ({ redis: { urls: nodes, namespace } }, { onCleanup }) => {
  const started: Candidate[] = [];
  onCleanup(() => {
    for (const { process } of started) process.kill("SIGKILL");
  });
  return (count: number) => {
    const options = { nodes, namespace, ttlMs: 2_000, nodeTimeoutMs: 1_000, connectTimeoutMs: 10_000 };
    for (let i = 0; i < count; i++) started.push(new Candidate({ ...options, label: `candidate ${i}` }));
    return started;
  };
});

const leading = (candidates: readonly Candidate[]): Candidate[] => candidates.filter(({ token }) => token !== undefined);

async function elected(candidates: readonly Candidate[], above = 0): Promise<Candidate> {
  await until(() => leading(candidates).some(({ token = 0 }) => token > above), "one is elected", 20_000);
  return leading(candidates).reduce((one, other) => ((one.token ?? 0) > (other.token ?? 0) ? one : other));
}

describe("a leader", () => {
  test("L2 that is killed is followed by one other, with a higher token", async ({ candidates, locker }) => {
    const all = candidates(3);
    const first = await elected(all);
    expect(leading(all)).toEqual([first]);
    expect(await locker.leader("scheduler")).toMatchObject({ label: expect.stringMatching(/^candidate \d$/), token: first.token });
    first.process.kill("SIGKILL");
    const others = all.filter((candidate) => candidate !== first);
    const second = await elected(others);
    expect(second.token).toBeGreaterThan(first.token ?? 0);
    expect(leading(others)).toEqual([second]);
  });

  test("L1 that stands still is followed by another, learns of it when it goes on, and stands again", async ({ candidates }) => {
    const all = candidates(2);
    const first = await elected(all);
    const token = first.token ?? 0;
    first.process.kill("SIGSTOP");
    const second = await elected(all.filter((candidate) => candidate !== first));
    expect(second.token).toBeGreaterThan(token);
    first.process.kill("SIGCONT");
    await until(() => first.told.some(({ kind }) => kind === "over"), "it learns of it");
    expect(first.told.at(-1)).toMatchObject({ token, leads: false, reason: expect.stringMatching(/expired|taken|unreachable/) });
    second.process.send("stop");
    await once(second.process, "exit");
    const again = await elected([first], second.told[0]?.token);
    expect(again).toBe(first);
  });

  test("that resigns lets another lead, without waiting for its ttl, and stands again", async ({ candidates }) => {
    const all = candidates(2);
    const first = await elected(all);
    await until(() => all.every(({ process }) => process.connected), "both run");
    for (let i = 0, leader = first; i < 3; i++) {
      const before = leader.token ?? 0;
      leader.process.send("resign");
      leader = await elected(all, before);
    }
    expect(first.told.find(({ kind }) => kind === "over")).toMatchObject({ reason: "released" });
  });
});

describe("a campaign", () => {
  test("runs one routine at a time, begins again when it is done, and gives the lease back", async ({ locker, eye }) => {
    const terms: Term[] = [];
    let running = 0;
    const campaign = locker.campaign("daily", async (term) => {
      expect(++running).toBe(1);
      term.assertLeads();
      terms.push(term);
      await new Promise((resolve) => setImmediate(resolve));
      running--;
    });
    await until(() => terms.length >= 3, "three terms", 10_000);
    await campaign.stop();
    expect(terms.map(({ token }) => token)).toEqual([...new Set(terms.map(({ token }) => token))].toSorted((a, b) => a - b));
    expect(terms.every(({ leads, signal, resource }) => !leads && signal.aborted && resource === "daily")).toBe(true);
    expect(() => terms[0]?.assertLeads()).toThrow(/with token \d+/);
    expect(campaign.term).toBeUndefined();
    await eye.gone("daily");
    expect(await locker.leader("daily")).toBeNull();
  });

  test("waits for the routine before it gives a resigned or stopped term back", async ({ shared }) => {
    const [one, other] = [shared(), shared()];
    let finish = (): void => {};
    let isTold = false;
    const campaign = one.campaign("r", async ({ signal }) => {
      await aborted(signal);
      await new Promise<void>((resolve) => {
        finish = resolve;
        isTold = true;
      });
    });
    await until(() => campaign.term !== undefined, "it leads");
    const stopped = campaign.stop();
    expect(campaign.term).toBeUndefined();
    expect((await other.tryAcquire("r")).ok).toBe(false);
    await until(() => isTold, "the routine was told");
    finish();
    await stopped;
    expect((await other.tryAcquire("r")).ok).toBe(true);
  });

  test("ends with what its routine throws while it leads, not with what it throws because the term has ended", async ({ locker, eye }) => {
    const mine = new Error("mine");
    expect(
      await failure(
        locker.campaign("r", () => {
          throw mine;
        }).ended,
      ),
    ).toBe(mine);
    let terms = 0;
    const campaign = locker.campaign("s", async ({ signal }) => {
      terms++;
      await aborted(signal);
      throw signal.reason;
    });
    await until(() => campaign.term !== undefined, "it leads");
    await eye.remove("s", [0, 1, 2, 3, 4]);
    await locker.fleet.forceRelease("s", { reason: "a test" });
    await campaign.resign();
    await until(() => terms >= 2, "it stands again", 10_000);
    await campaign[Symbol.asyncDispose]();
  });

  test("L1 goes on when its routine throws after the term is over by the clock, before a timer has said so", async ({ shared }) => {
    const locker = shared({ ttlMs: 1_000 });
    const leads: boolean[] = [];
    const campaign = locker.campaign("r", (term) => {
      if (leads.length > 0) return leads.push(true);
      // The process stands still, and what it reads first when it goes on is a refused write.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_100);
      leads.push(false);
      throw new Error(`a write with token ${term.token} was refused`);
    });
    await Promise.race([campaign.ended, until(() => leads.length > 1, "it leads again", 10_000)]);
    await campaign.stop();
    expect(leads.slice(0, 2)).toEqual([false, true]);
  });

  test("ends with its signal, and with its locker", async ({ shared }) => {
    const [holder, locker] = [shared(), shared()];
    const lease = await holder.acquire("r");
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
    await lease.release();
  });

  test("refuses what cannot be right before any I/O", ({ locker }) => {
    expect(() => locker.campaign("", () => {})).toThrow();
    expect(() => locker.campaign("r", undefined as never)).toThrow("campaign needs a routine to run");
    expect(() => locker.campaign("r", () => {}, { waitMs: 7 } as never)).toThrow(TypeError);
    expect(() => locker.campaign("r", () => {}, { ttlMs: 0 })).toThrow(RangeError);
  });
});
