// A story in simulated time: lockers of several processes over simulated servers, whose steps a test
// says one by one. Nothing waits for real time, and every run is the same.
import { QuorumLocker } from "#lock/locker.js";
import { type LockerOptions, readPolicy } from "#lock/options/policy.js";
import type { Locker } from "#lock/protocol/locker.js";
import { openFleet } from "#lock/redis/open-fleet.js";
import { Chance, ClientProcess, Timeline } from "./engine.js";
import { Machine, Path } from "./network.js";
import { SimLink } from "./sim-link.js";
import { SimServer } from "./sim-server.js";

const BORN_AT_MS = 1_700_000_000_000;
const NAMESPACE = "sim";
/** Longer than anything that a story waits for. */
const NEVER_MS = 1_800_000;

export interface Actor {
  readonly locker: Locker;
  readonly process: ClientProcess;
  /** Its process dies, and its connections with it. */
  kill(): void;
}

export class Story {
  readonly machines: readonly Machine[];
  readonly #timeline = new Timeline();
  readonly #chance = new Chance(1);
  #processes = 0;

  constructor(nodes = 5) {
    const clock = { rate: 1, aheadMs: BORN_AT_MS };
    this.machines = Array.from(
      { length: nodes },
      (_, i) => new Machine(new SimServer({ name: `n${i + 1}`, now: () => this.nowMs, clock, appendfsync: "always" })),
    );
  }

  get nowMs(): number {
    return this.#timeline.now;
  }

  /** A process with a locker of its own, which has these options of `createLocker`. */
  actor(options: Partial<LockerOptions> = {}): Actor {
    const name = `p${++this.#processes}`;
    const chance = this.#chance.of(name);
    const process = new ClientProcess(name, this.#timeline, { rate: 1, wallAheadMs: BORN_AT_MS, chance });
    const urls = this.machines.map(({ server }) => `redis://${server.name}:6379`);
    const paths = this.machines.map((machine) => {
      const way = { client: process, machine, chance: chance.of(machine.server.name), log: undefined };
      return new Path({ timeline: this.#timeline, speed: { leastMs: 0.2, jitterMs: 0.3 }, ...way });
    });
    const links: SimLink[] = [];
    const policy = readPolicy({ nodes: urls, namespace: NAMESPACE, label: name, ...options });
    const fleet = openFleet({
      ...policy,
      clock: process,
      openLink: (source, settings) => {
        const link = new SimLink(paths[urls.indexOf(String(source))] as Path, settings);
        links.push(link);
        return link;
      },
      onEvent: () => {},
    });
    return {
      process,
      locker: new QuorumLocker(fleet, policy, process),
      kill: () => {
        process.die();
        for (const link of links) link.abandon();
      },
    };
  }

  /** Goes on until it is so. */
  async until(isSo: () => boolean, what: string): Promise<void> {
    const endMs = this.nowMs + NEVER_MS;
    await this.#timeline.play(() => isSo() || this.nowMs > endMs);
    if (!isSo()) throw new Error(`never came: ${what}`);
  }

  /** Goes on for so long. */
  async pass(ms: number): Promise<void> {
    const endMs = this.nowMs + ms;
    await this.until(() => this.nowMs > endMs, "a later moment");
  }

  /** Goes on until it has settled; says how long that took there. */
  async played<T>(work: Promise<T>): Promise<{ readonly result: T; readonly tookMs: number }> {
    let isDone = false;
    const beganMs = this.nowMs;
    const settle = (): void => {
      isDone = true;
    };
    work.then(settle, settle);
    await this.until(() => isDone, "the end of what was begun");
    return { result: await work, tookMs: this.nowMs - beganMs };
  }

  /** How many wait for it, on each node. */
  queued(resource: string): readonly number[] {
    return this.machines.map(({ server }) => server.memory.hash(`{${NAMESPACE}}:queue:${resource}`, server.wallMs())?.size ?? 0);
  }

  /** Goes on until so many wait for it, on a quorum of five or three nodes. */
  async untilQueued(resource: string, count: number): Promise<void> {
    const isMajority = (nodes: number): boolean => nodes > this.machines.length / 2;
    await this.until(() => isMajority(this.queued(resource).filter((length) => length === count).length), `${count} wait`);
  }
}
