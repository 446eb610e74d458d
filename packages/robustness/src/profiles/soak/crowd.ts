// The client processes of the soak: starts them, keeps what each said last and the sum of what they did, and notices when one has gone. It judges nothing.
import { fileURLToPath } from "node:url";
import { type Child, startChild } from "@palisade/testkit";
import { type ClientOrders, type ClientReading, type FromClient, type Timing, type ToClient, timings } from "./client-words.js";
import { type Counts, Latency } from "./latency.js";

const program = fileURLToPath(new URL("client.js", import.meta.url));

/** The longest operation is a write that is tried five times against a gateway that does not answer. */
const LEAVE_MS = 40_000;

interface Member {
  readonly name: string;
  readonly child: Child;
  isReady: boolean;
  last: { readonly reading: ClientReading; readonly at: number } | undefined;
}

export class Crowd implements AsyncDisposable {
  readonly operations: Record<string, number> = {};
  readonly failures: Record<string, number> = {};
  /** Rejects when a client goes before it was told to. */
  readonly lost: Promise<never>;
  readonly #members: readonly Member[];
  readonly #latencies = Object.fromEntries(timings.map((name) => [name, new Latency()])) as Record<Timing, Latency>;
  #isOver = false;
  #onReady = (): void => {};

  constructor(orders: readonly ClientOrders[]) {
    this.#members = orders.map((order) => this.#start(order));
    this.lost = this.#watch();
    this.lost.catch(() => {}); // Whoever waits for the run races against it.
  }

  async ready(): Promise<void> {
    const all = new Promise<void>((resolve) => {
      this.#onReady = () => this.#members.every(({ isReady }) => isReady) && resolve();
      this.#onReady();
    });
    await Promise.race([all, this.lost]);
  }

  go(): void {
    this.#tell({ kind: "go" });
  }

  get clients(): readonly Pick<Member, "name" | "last">[] {
    return this.#members;
  }

  get pids(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#members.map(({ name, child }) => [name, child.pid]));
  }

  /** Of all clients since the last call. */
  takeLatencies(): Readonly<Record<Timing, Counts>> {
    return Object.fromEntries(timings.map((name) => [name, this.#latencies[name].take()])) as unknown as Record<Timing, Counts>;
  }

  get total(): number {
    return Object.values(this.operations).reduce((sum, count) => sum + count, 0);
  }

  signal(client: number, signal: NodeJS.Signals): void {
    this.#members[client]?.child.signal(signal);
  }

  /** All finish what they do, close their locks and go; fails if one cannot. */
  async leave(): Promise<void> {
    this.#isOver = true;
    this.#tell({ kind: "leave", withinMs: LEAVE_MS });
    const exits = await Promise.all(this.#members.map(({ child }) => child.waitForExit()));
    const failed = exits.findIndex(({ code }) => code !== 0);
    if (failed >= 0) throw new Error(this.#members[failed]?.child.howItEnded());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#members.map(({ child }) => child.kill()));
  }

  #start(order: ClientOrders): Member {
    const name = `client ${order.client}`;
    const member: Member = {
      name,
      isReady: false,
      last: undefined,
      child: startChild({
        command: process.execPath,
        args: [program, JSON.stringify(order)],
        name,
        onMessage: (word) => this.#hear(member, word as FromClient),
      }),
    };
    return member;
  }

  #hear(member: Member, word: FromClient): void {
    if (word.kind === "ready") {
      member.isReady = true;
      this.#onReady();
      return;
    }
    member.last = { reading: word, at: performance.now() };
    add(this.operations, word.operations);
    add(this.failures, word.failures);
    for (const name of timings) this.#latencies[name].addAll(word.latencies[name]);
  }

  #tell(word: ToClient): void {
    for (const { child } of this.#members) child.send(word);
  }

  async #watch(): Promise<never> {
    const gone = await Promise.race(this.#members.map(async ({ child }) => child.waitForExit().then(() => child)));
    if (this.#isOver) return await new Promise<never>(() => {});
    throw new Error(gone.howItEnded());
  }
}

function add(to: Record<string, number>, counts: Readonly<Record<string, number>>): void {
  for (const [name, count] of Object.entries(counts)) to[name] = (to[name] ?? 0) + count;
}
