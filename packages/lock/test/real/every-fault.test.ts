// Every fault of the testkit, on fleets of three and five: a minority costs nothing, a
// majority is never taken for a holder, and afterwards nothing is left.
import type { Locker } from "@palisade/lock";
import type { RedisFleet, RedisNode } from "@palisade/testkit";
import { describe, expect, fleetHolders, test, until } from "./lock-test.js";

type Act = (node: RedisNode) => void | Promise<void>;

interface Fault {
  readonly happen: Act;
  readonly end: Act;
  /** Whether the node answers no request while it lasts. */
  readonly isDeaf: boolean;
}

const heal: Act = (node) => node.heal();
const nothing: Act = () => {};

const faults: Readonly<Record<string, Fault>> = {
  killed: { happen: (node) => node.kill(), end: (node) => node.restart(), isDeaf: true },
  paused: { happen: (node) => node.pause(), end: (node) => node.resume(), isDeaf: true },
  partitioned: { happen: (node) => node.partition(), end: heal, isDeaf: true },
  "slower than allowed": { happen: (node) => node.slow(200), end: heal, isDeaf: true },
  unheard: { happen: (node) => node.dropReplies(), end: heal, isDeaf: true },
  "not spoken to": { happen: (node) => node.dropRequests(), end: heal, isDeaf: true },
  "answering late": { happen: (node) => node.holdReplies(), end: (node) => node.deliver(), isDeaf: true },
  "asked late": { happen: (node) => node.holdRequests(), end: (node) => node.deliver(), isDeaf: true },
  "refusing connections": { happen: (node) => node.refuse(), end: heal, isDeaf: true },
  "cut off once": { happen: (node) => node.cut(), end: nothing, isDeaf: false },
  "cut off in the middle of a message": { happen: (node) => node.cutAfter(10), end: heal, isDeaf: false },
  "ahead of its time": {
    happen: (node) => node.shiftClock(5_000),
    end: (node) => node.shiftClock(-5_000),
    isDeaf: false,
  },
  "without memory": { happen: (node) => node.restart({ forget: true }), end: nothing, isDeaf: false },
};

/** Long enough for a busy machine, and short enough to be waited for. */
const nodeTimeoutMs = 120;
const settings = { ttlMs: 500, maxTtlMs: 500, nodeTimeoutMs, waitMs: 20_000 };

/** Of a machine that has other work. */
const patienceMs = 20_000;

class Story {
  readonly #locker: Locker;
  readonly #fleet: RedisFleet;
  #token = 0;

  constructor(locker: Locker, fleet: RedisFleet) {
    this.#locker = locker;
    this.#fleet = fleet;
  }

  /** Some nodes out of five or three. */
  async tell(name: string, { happen, end, isDeaf }: Fault, count: number): Promise<void> {
    const { nodes } = this.#fleet;
    const isMajority = count > nodes.length / 2;
    await until(
      async () => (await this.#locker.ready()).admitted.length === nodes.length,
      `all nodes are back before they are ${name}`,
      patienceMs,
    );
    const broken = nodes.slice(0, count);
    await Promise.all(broken.map(happen));
    const attempt = isMajority ? await this.#locker.tryAcquire("r") : { ok: true as const, lease: await this.#locker.acquire("r") };
    if (isMajority && isDeaf) expect(attempt, name).toMatchObject({ ok: false });
    if (!attempt.ok) expect(["no_quorum", "too_slow"], name).toContain(attempt.reason);
    await Promise.all(broken.map(end));
    if (attempt.ok) await attempt.lease.release();
    await this.#locker.using("r", ({ token }) => {
      expect(token, name).toBeGreaterThan(attempt.ok ? attempt.lease.token : this.#token);
      this.#token = token;
    });
    const isFree = async () => (await fleetHolders(this.#fleet, "r")).every((holder) => holder === null);
    await until(isFree, `nothing is left by nodes that were ${name}`, patienceMs);
  }
}

describe.concurrent("whatever happens to nodes", () => {
  test.for([
    { of: 3, broken: 2 },
    { of: 5, broken: 2 },
  ])(
    "$broken of $of cost no caller a lease if they are a minority; a majority is not called a holder; later tokens are higher, and nothing is left",
    // Thirteen stories, of which some wait for a connection or a memory to come back.
    { timeout: 120_000 },
    async ({ of, broken }, { fleet, open }) => {
      const running = await fleet({ nodes: of, appendfsync: "always" });
      const locker = open({ ...settings, nodes: running.urls });
      const story = new Story(locker, running);
      for (const [name, fault] of Object.entries(faults)) await story.tell(name, fault, broken);
    },
  );
});
