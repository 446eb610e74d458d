// One act while it is told: its clock, its lanes, its cast and its claims. Scenarios speak through it, and everything they do is seen by the audience.
// Decides that the first claim that does not hold ends the act.
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { Actor } from "./actor.js";
import { Desk } from "./desk.js";
import type { Act, Scenario } from "./scenario.js";
import type { Stage } from "./stage.js";
import { StoryDiffers } from "./story-differs.js";
import type { Audience, Step } from "./story-event.js";
import type { Document, Surroundings } from "./worker-protocol.js";

export interface Resource {
  /** As the audience sees it. */
  readonly shown: string;
  /** As the lock and the store see it: nobody else's in this run. */
  readonly name: string;
}

export interface Telling {
  readonly stage: Stage;
  readonly audience: Audience;
  readonly ttlMs: number;
  /** How long to let the audience read after each step; 0 for none. */
  readonly beatMs: number;
  /** Makes names of this run nobody else's. */
  readonly run: string;
  /** Aborted when the user wants to see no more. */
  readonly signal?: AbortSignal;
}

export type StepDetails = Pick<Step, "text"> & Partial<Pick<Step, "to" | "token">>;

export class Story implements AsyncDisposable {
  readonly ttlMs: number;
  readonly #telling: Telling;
  readonly #scenario: Scenario;
  readonly #act: Act;
  #startedAt: number | undefined;
  readonly #cast: Actor[] = [];
  readonly #closing: AsyncDisposable[] = [];

  constructor(telling: Telling, scenario: Scenario, act: Act) {
    this.#telling = telling;
    this.#scenario = scenario;
    this.#act = act;
    this.ttlMs = telling.ttlMs;
    telling.stage.crew.prepare(act.actors.filter((actor) => !["lock", "gateway", "store"].includes(actor)).length);
    telling.audience.notice({ event: "act", scenario: scenario.name, act: act.title, actors: act.actors });
  }

  get door(): Act["door"] {
    return this.#act.door;
  }

  /** Worker processes that know where everything is. */
  async workers<const Names extends readonly string[]>(...names: Names): Promise<{ readonly [Name in keyof Names]: Actor }> {
    const actors = await Promise.all(names.map((name) => this.worker(name)));
    return actors as unknown as { readonly [Name in keyof Names]: Actor };
  }

  /** A worker process whose surroundings differ: another way to a server, other servers. */
  async worker(name: string, surroundings: Partial<Surroundings> = {}): Promise<Actor> {
    // In surroundings of its own nobody can leave in an orderly way once they are broken, so such a worker does not come back.
    const afterwards = Object.keys(surroundings).length === 0 ? "comes_back" : "ends";
    const actor = new Actor(this, { name, process: this.#telling.stage.crew.hire(), afterwards });
    this.#cast.push(actor);
    await actor.meets({ ...this.#surroundings(name), ...surroundings });
    return actor;
  }

  get stage(): Stage {
    return this.#telling.stage;
  }

  resource(shown: string): Resource {
    return { shown, name: `${this.#telling.run}/${this.#scenario.name}/${this.#scenario.acts.indexOf(this.#act) + 1}/${shown}` };
  }

  /** A message as the audience knows the names. */
  withoutRun(message: string): string {
    return message.replaceAll(this.resource("").name, "");
  }

  step(kind: Step["kind"], from: string, details: StepDetails): void {
    const atMs = this.#now();
    this.#telling.audience.notice({ event: "step", scenario: this.#scenario.name, act: this.#act.title, atMs, kind, from, ...details });
  }

  /** Lets the audience read. */
  async beat(): Promise<void> {
    if (this.#telling.beatMs > 0) await this.passes(this.#telling.beatMs);
  }

  /** Lets time pass. */
  async passes(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#telling.signal });
  }

  /** What is stored in the end, as anybody sees it who reads. */
  async stored(resource: Resource, surroundings: Partial<Surroundings> = {}): Promise<Document | null> {
    const desk = new Desk({ ...this.#surroundings("narrator"), ...surroundings });
    try {
      const read = await desk.read(resource.name, this.door);
      if (!read.ok) throw new StoryDiffers(`${resource.shown} could not be read: ${read.code}, ${read.message}`);
      this.step("remarks", "store", { text: `${resource.shown} is ${JSON.stringify(read.document)}` });
      return read.document;
    } finally {
      await desk.close();
    }
  }

  /** A claim of the story; the act ends here if it does not hold. */
  expect(claim: string, seen: unknown, wanted: unknown = true): void {
    const ok = isDeepStrictEqual(seen, wanted);
    const saw = ok ? {} : { saw: JSON.stringify(seen) };
    const atMs = this.#now();
    this.#telling.audience.notice({ event: "check", scenario: this.#scenario.name, act: this.#act.title, atMs, ok, claim, ...saw });
    if (!ok) throw new StoryDiffers(`${this.#act.title}: it is not true that ${claim}; seen: ${JSON.stringify(seen)}`);
  }

  /** What was started for this act alone ends with it. */
  own<Thing extends AsyncDisposable>(thing: Thing): Thing {
    this.#closing.push(thing);
    return thing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#cast.map((actor) => actor.exits(this.#telling.stage.crew)));
    for (const thing of this.#closing.reverse()) await thing[Symbol.asyncDispose]();
  }

  /** Counted from the first thing that is seen, not from the setting up. */
  #now(): number {
    this.#startedAt ??= performance.now();
    return performance.now() - this.#startedAt;
  }

  #surroundings(name: string): Surroundings {
    const { redisUrls, namespace, gateway, databaseUrl } = this.#telling.stage;
    return {
      name,
      redisUrls,
      namespace,
      ttlMs: this.ttlMs,
      // Very patient: where no story is about silent nodes, a slow machine must not look like one.
      nodeTimeoutMs: 5_000,
      gatewayUrl: gateway.url,
      apiKey: gateway.apiKey,
      databaseUrl,
    };
  }
}
