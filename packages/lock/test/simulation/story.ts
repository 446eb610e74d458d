// A story in simulated time: lockers of several processes over simulated servers, and a test that goes
// on as they do. Nothing waits for real time, and every run is the same.
import { test as plain } from "vitest";
import { QuorumLocker } from "#lock/locker.js";
import { type LockerOptions, readPolicy } from "#lock/options/policy.js";
import type { NodeEvent } from "#lock/protocol/events.js";
import type { OpenFleet } from "#lock/protocol/fleet.js";
import type { Locker } from "#lock/protocol/locker.js";
import type { LockNode } from "#lock/protocol/node.js";
import type { ScriptCall } from "#lock/redis/calls.js";
import { openFleet } from "#lock/redis/open-fleet.js";
import { type NodeStatus, status } from "#lock/redis/record.js";
import { Memory } from "./commands.js";
import { Chance, ClientProcess, Timeline } from "./engine.js";
import { Machine, Path } from "./network.js";
import { SimLink } from "./sim-link.js";
import { type Executed, SimServer } from "./sim-server.js";

const BORN_AT_MS = 1_700_000_000_000;
const NAMESPACE = "sim";
/** Longer than any story takes. */
const NEVER_MS = 3_600_000;
const LOOK_EVERY_MS = 1;

interface Setting {
  /** How many nodes there are; five by default. */
  readonly nodes?: number;
  /** Whether they are believed after a restart. */
  readonly appendfsync?: "always" | "no";
}

/** A test that tells a story: time passes while it waits for something, and only then. */
export function test(title: string, tell: (story: Story) => Promise<void>, setting: Setting = {}): void {
  plain(title, async () => {
    const story = new Story(setting);
    await story.play(tell(story));
  });
}

/** One process with a locker of its own. */
export interface Actor {
  readonly locker: Locker;
  readonly process: ClientProcess;
  /** Below the locker: which nodes there are, how they stand, and what was reported of them. */
  readonly fleet: OpenFleet;
  readonly events: readonly NodeEvent[];
  node(name: string): LockNode;
  /** The next event of the kind that tells of this node. */
  heard<Kind extends NodeEvent["kind"]>(kind: Kind, node?: string): Promise<Extract<NodeEvent, { kind: Kind }>>;
  /** What it asks of this node does not arrive until it is delivered. */
  hold(node: string): void;
  deliver(): void;
  /** Its process dies, and its connections with it. */
  kill(): void;
}

interface ActorOptions extends Partial<LockerOptions> {
  readonly nodes?: readonly string[];
  readonly gate?: Gate;
  /** How long it waits for any node, whatever its leases are. */
  readonly timeoutMs?: number;
}

/** Holds back what a process asks by this script of these nodes. */
export class Gate {
  readonly script: string;
  readonly nodes: readonly string[];
  isReached = false;
  #open = (): void => {};
  readonly #isOpen = new Promise<void>((resolve) => {
    this.#open = resolve;
  });

  constructor(script: string, ...nodes: readonly string[]) {
    this.script = script;
    this.nodes = nodes;
  }

  open(): void {
    this.#open();
  }

  guard(link: SimLink, node: string): SimLink {
    if (!this.nodes.includes(node)) return link;
    const evaluate = link.eval.bind(link);
    return Object.assign(link, {
      eval: async (source: string, keyCount: number, ...text: string[]) => {
        if (source === this.script) {
          this.isReached = true;
          await this.#isOpen;
        }
        return evaluate(source, keyCount, ...text);
      },
    });
  }
}

let owners = 0;

/** A request with an owner of its own; its release tells nobody. */
export function asking(resource: string, ttlMs: number) {
  return { resources: [resource], owner: `owner-${++owners}`, label: `label ${owners}`, ttlMs, tells: false };
}

class Story {
  readonly nodes: readonly StoryNode[];
  readonly #timeline = new Timeline();
  readonly #chance = new Chance(1);
  #processes = 0;

  constructor({ nodes = 5, appendfsync = "always" }: Setting) {
    const now = (): number => this.nowMs;
    this.nodes = Array.from({ length: nodes }, (_, i) => new StoryNode(`n${i + 1}`, now, appendfsync));
  }

  get nowMs(): number {
    return this.#timeline.now;
  }

  async play(body: Promise<void>): Promise<void> {
    let isOver = false;
    const end = (): void => {
      isOver = true;
    };
    body.then(end, end);
    await this.#timeline.play(() => isOver || this.nowMs > NEVER_MS);
    if (!isOver) throw new Error("the story never came to its end");
    await body;
  }

  /** A process with a locker of its own, which has these options of `createLocker`. */
  actor({ gate, timeoutMs, ...options }: ActorOptions = {}): Actor {
    const name = `p${++this.#processes}`;
    const chance = this.#chance.of(name);
    const process = new ClientProcess(name, this.#timeline, { rate: 1, wallAheadMs: BORN_AT_MS, chance });
    const nodes = options.nodes ?? this.urls;
    const links: SimLink[] = [];
    const ways: (readonly [node: string, way: Path])[] = [];
    const events: NodeEvent[] = [];
    const policy = readPolicy({ nodes: this.urls, namespace: NAMESPACE, label: name, ...options });
    const fleet = openFleet({
      ...policy,
      ...(timeoutMs === undefined ? {} : { nodeTimeoutMs: timeoutMs, connectTimeoutMs: timeoutMs }),
      nodes,
      clock: process,
      openLink: (source, settings) => {
        const node = this.nodes[this.urls.indexOf(String(source))];
        if (node === undefined) throw new RangeError(`there is no server at ${String(source)}`);
        const way = node.way(process, this.#timeline, chance.of(node.name));
        ways.push([node.name, way]);
        const link = new SimLink(way, settings);
        links.push(link);
        return gate?.guard(link, node.name) ?? link;
      },
      onEvent: (event) => events.push(event),
    });
    return {
      process,
      locker: new QuorumLocker(fleet, policy, process),
      fleet,
      events,
      node(wanted) {
        const found = fleet.nodes.find((node) => node.name === wanted);
        if (found === undefined) throw new RangeError(`no node is called ${wanted}`);
        return found;
      },
      heard: async (kind, node) => {
        const from = events.length;
        const find = () =>
          events.find((event, i) => i >= from && event.kind === kind && (node === undefined || ("node" in event && event.node === node)));
        await this.until(find, `${kind} is heard${node === undefined ? "" : ` of ${node}`}`);
        return find() as Extract<NodeEvent, { kind: typeof kind }>;
      },
      hold(node) {
        for (const [name, { there }] of ways) if (name === node) there.hold();
      },
      deliver() {
        for (const [, { there }] of ways) there.open();
      },
      kill() {
        process.die();
        for (const link of links) link.abandon();
      },
    };
  }

  get urls(): readonly string[] {
    return this.nodes.map(({ name }) => `redis://${name}:6379`);
  }

  /** Lets so much time pass. */
  pass(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#timeline.after(ms, () => {
        this.#timeline.beginTurn();
        resolve();
      });
    });
  }

  /** Goes on until this does not throw any more. */
  async eventually(check: () => unknown, withinMs = 60_000): Promise<void> {
    for (const endsMs = this.nowMs + withinMs; ; await this.pass(LOOK_EVERY_MS)) {
      try {
        await check();
        return;
      } catch (error) {
        if (this.nowMs > endsMs) throw error;
      }
    }
  }

  /** Goes on until it is so. */
  until(isSo: () => unknown, what: string): Promise<void> {
    return this.eventually(async () => {
      if (!(await isSo())) throw new Error(`it never came about that ${what}`);
    });
  }

  /** How long it took, and what came of it. */
  async timed<T>(work: Promise<T>): Promise<{ readonly result: T; readonly tookMs: number }> {
    const beganMs = this.nowMs;
    const result = await work;
    return { result, tookMs: this.nowMs - beganMs };
  }

  /** What is stored on each node, null where there is nothing. */
  stored(kind: "lock" | "token", resource: string): readonly (string | null)[] {
    return this.nodes.map(({ server }) => server.memory.get(`{${NAMESPACE}}:${kind}:${resource}`, server.wallMs()) ?? null);
  }

  /** How many wait for it, on each node. */
  queued(resource: string): readonly number[] {
    return this.nodes.map(({ server }) => server.memory.hash(`{${NAMESPACE}}:queue:${resource}`, server.wallMs())?.size ?? 0);
  }

  /** Goes on until so many wait for it, on a majority. */
  untilQueued(resource: string, count: number): Promise<void> {
    const isMajority = (nodes: number): boolean => nodes > this.nodes.length / 2;
    return this.until(() => isMajority(this.queued(resource).filter((length) => length === count).length), `${count} wait`);
  }
}

export type { Story };

/** A simulated server and all ways to it, with the faults of the testkit's real ones. */
class StoryNode {
  readonly name: string;
  readonly server: SimServer;
  readonly #machine: Machine;
  readonly #ways: Path[] = [];
  /** How many commands of scripts and scripts it has executed. */
  calls = 0;
  #refused: Executed["name"];
  #isCutOff = false;

  constructor(name: string, now: () => number, appendfsync: "always" | "no") {
    this.name = name;
    const clock = { rate: 1, aheadMs: BORN_AT_MS };
    this.server = new SimServer({
      name,
      now,
      clock,
      appendfsync,
      edit: (script, text) => (script !== undefined && script === this.#refused ? "return { err = 'NOREPLICAS' }" : text),
      onExecuted: () => {
        this.calls++;
      },
    });
    this.#machine = new Machine(this.server);
  }

  way(client: ClientProcess, timeline: Timeline, chance: Chance): Path {
    const speed = { leastMs: 0.2, jitterMs: 0.3 };
    const way = new Path({ timeline, client, machine: this.#machine, speed, chance, log: undefined });
    this.#ways.push(way);
    if (this.#isCutOff) hold(way);
    return way;
  }

  kill(): void {
    this.#machine.goDown();
    this.server.end();
  }

  restart(memory: Memory = this.server.memory): void {
    this.kill();
    this.server.start(memory);
    this.#machine.comeUp();
  }

  /** Restarts without its memory. */
  forget(): void {
    this.restart(new Memory());
  }

  /** In the same life of the server. */
  remember(other: StoryNode | undefined): void {
    if (other !== undefined) this.server.memory = other.server.memory.copy();
  }

  pause(): void {
    this.#machine.stop();
  }

  resume(): void {
    this.#machine.continue();
  }

  /** Nothing passes in either direction until it is healed, and then all that was kept. */
  partition(): void {
    this.#isCutOff = true;
    for (const way of this.#ways) hold(way);
  }

  /** The node's answers are kept until it is healed. */
  holdReplies(): void {
    for (const { back } of this.#ways) back.hold();
  }

  heal(): void {
    this.#isCutOff = false;
    for (const way of this.#ways) way.heal();
  }

  cut(): void {
    for (const way of this.#ways) way.cut();
  }

  /** How many processes listen for what is told to them. */
  get listeners(): number {
    return this.server.subscribers;
  }

  /** One command, past the lock. */
  command(...words: readonly string[]): unknown {
    return this.server.eval("return redis.call(unpack(ARGV))", 0, words);
  }

  /** One script of the admission or of a change, past the lock. */
  run<Answer>({ source, args, read }: ScriptCall<Answer>): Answer {
    return read(this.server.eval(source, 2, [`{${NAMESPACE}}:node`, `{${NAMESPACE}}:marks`, ...args]));
  }

  get status(): NodeStatus {
    return this.run(status);
  }

  /** One field of its record. */
  field(name: string): string | null {
    return this.command("HGET", `{${NAMESPACE}}:node`, name) as string | null;
  }

  /** Answers this script with an error from now on; undefined: no more. */
  refuse(script: Executed["name"]): void {
    this.#refused = script;
    this.server.flushScripts();
  }
}

function hold({ there, back }: Path): void {
  there.hold();
  back.hold();
}
