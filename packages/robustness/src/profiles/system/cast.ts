// The processes of a run that act by themselves: starts them, stops, kills and replaces them, hears what they tell. It judges nothing and breaks no network.
import { fileURLToPath } from "node:url";
import { type Child, startChild } from "@palisade/testkit";
import type { FromActor, Tally, ToActor } from "./words.js";

/** A sleeper is continued again and again until it says that it is awake: it may stop itself later than its message arrived. */
const AGAIN_MS = 100;

export interface Part {
  readonly name: string;
  readonly program: "client" | "stranger";
  /** For the first process in this place, the second, and so on. */
  readonly orders: (life: number) => object;
}

export class Actor {
  readonly #part: Part;
  readonly #cast: Cast;
  readonly #said = new Set<FromActor["kind"]>();
  #child: Child;
  #life = 0;
  #waker: NodeJS.Timeout | undefined;
  #lastWord: ToActor | undefined;

  constructor(part: Part, cast: Cast) {
    this.#part = part;
    this.#cast = cast;
    this.#child = this.#start();
  }

  get name(): string {
    return this.#part.name;
  }

  get child(): Child {
    return this.#child;
  }

  has(kind: "ready" | "done"): boolean {
    return this.#said.has(kind);
  }

  tell(word: ToActor): void {
    this.#lastWord = word;
    if (this.has("ready")) this.#child.send(word);
  }

  /** SIGSTOP from outside, whatever it is doing. */
  stop(): void {
    if (this.#waker === undefined) this.#child.signal("SIGSTOP");
  }

  continue(): void {
    this.#child.signal("SIGCONT");
  }

  /** SIGKILL, and somebody else in its place. */
  async replace(): Promise<void> {
    this.#wake();
    this.#said.clear();
    await this.#child.kill();
    this.#life++;
    this.#child = this.#start();
  }

  async end(): Promise<void> {
    this.#wake();
    await this.#child.kill();
  }

  #start(): Child {
    const { name, program, orders } = this.#part;
    const life = this.#life;
    const child = startChild({
      command: process.execPath,
      args: [fileURLToPath(new URL(`${program}.js`, import.meta.url)), JSON.stringify(orders(life))],
      name: `${name}.${life}`,
      onMessage: (word) => life === this.#life && this.#hear(word as FromActor),
    });
    void child.waitForExit().then(() => this.#cast.look());
    return child;
  }

  #hear(word: FromActor): void {
    if (word.kind === "tally") this.#cast.count(word);
    else if (word.kind === "asleep") this.#wakeLater(word.forMs);
    else if (word.kind === "awake") this.#wake();
    else this.#said.add(word.kind);
    if (word.kind === "asleep") this.#cast.naps++;
    // Whoever comes in later hears what the others were told.
    if (word.kind === "ready" && this.#lastWord !== undefined) {
      this.#child.send({ kind: "go" });
      if (this.#lastWord.kind !== "go") this.#child.send(this.#lastWord);
    }
    this.#cast.look();
  }

  #wakeLater(inMs: number): void {
    this.#waker = setTimeout(() => {
      if (this.#child.signal("SIGCONT")) this.#wakeLater(AGAIN_MS);
    }, inMs);
  }

  #wake(): void {
    clearTimeout(this.#waker);
    this.#waker = undefined;
  }
}

export class Cast implements AsyncDisposable {
  readonly actors: readonly Actor[];
  readonly tally = { done: 0, refused: 0, unknown: 0, overwrote: 0 };
  /** How often a client stopped itself in the middle of its work. */
  naps = 0;
  readonly #waiting = new Set<() => void>();

  constructor(parts: readonly Part[]) {
    this.actors = parts.map((part) => new Actor(part, this));
  }

  tell(word: ToActor): void {
    for (const actor of this.actors) actor.tell(word);
  }

  /** Resolves with true when all have said so, with false when the signal comes first; fails when one went by itself. */
  all(kind: "ready" | "done", signal?: AbortSignal): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const settle = (act: () => void): void => {
        this.#waiting.delete(look);
        signal?.removeEventListener("abort", onAbort);
        act();
      };
      const onAbort = (): void => settle(() => resolve(false));
      const look = (): void => {
        const gone = this.actors.find(({ child }) => child.exit !== undefined && child.exit.signal !== "SIGKILL");
        if (gone !== undefined)
          settle(() => setTimeout(() => reject(new Error(gone.child.howItEnded())), 50)); // Its last words come a little later.
        else if (this.actors.every((actor) => actor.has(kind))) settle(() => resolve(true));
      };
      this.#waiting.add(look);
      signal?.addEventListener("abort", onAbort);
      look();
    });
  }

  /** All close what they have open and go. */
  async leave(): Promise<void> {
    this.tell({ kind: "leave" });
    const exits = await Promise.all(this.actors.map(({ child }) => child.waitForExit()));
    const failed = exits.findIndex(({ code }) => code !== 0);
    if (failed >= 0) throw new Error(this.actors[failed]?.child.howItEnded());
  }

  count({ done, refused, unknown, overwrote }: Tally): void {
    this.tally.done += done;
    this.tally.refused += refused;
    this.tally.unknown += unknown;
    this.tally.overwrote += overwrote;
  }

  look(): void {
    for (const look of this.#waiting) look();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.actors.map((actor) => actor.end()));
  }
}
