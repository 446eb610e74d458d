// Clients that write without pause, sometimes with an old token, and record the answers.
import { setTimeout as sleep } from "node:timers/promises";
import { type Answer, put } from "./wire.js";
import type { Told } from "./write-history.js";

export interface WritersOptions {
  readonly urls: readonly string[];
  readonly resources: readonly string[];
  readonly writers: number;
  readonly random: () => number;
}

export class Writers {
  readonly told: Told[] = [];
  readonly #options: WritersOptions;
  readonly #fences = new Map<string, number>();
  readonly #loops: readonly Promise<void>[];
  #seq = 0;
  #stopped = false;

  constructor(options: WritersOptions) {
    this.#options = options;
    this.#loops = Array.from({ length: options.writers }, () => this.#write());
  }

  get accepted(): number {
    return this.told.filter(({ answer }) => answer.kind === "accepted").length;
  }

  async stop(): Promise<readonly Told[]> {
    this.#stopped = true;
    await Promise.all(this.#loops);
    return this.told;
  }

  async #write(): Promise<void> {
    while (!this.#stopped) {
      const { urls, resources } = this.#options;
      const [url, resource] = [this.#pick(urls), this.#pick(resources)];
      const token = this.#token(resource);
      this.#seq += 1;
      const seq = this.#seq;
      const answer = await put(url, resource, { token: `${token};seq=${seq}`, value: { seq } }).then(answerOf, connectionLost);
      this.told.push({ resource, token, seq, answer });
      // The gateway is down; give its restart the processor.
      if (answer.kind === "unknown") await sleep(2);
    }
  }

  /** Mostly the newest token, now and then a newer one, now and then an old one. */
  #token(resource: string): number {
    const fence = this.#fences.get(resource) ?? 5;
    const draw = this.#options.random();
    if (draw < 0.1) this.#fences.set(resource, fence + 1);
    return draw > 0.8 ? fence - 1 - Math.floor(this.#options.random() * 3) : fence;
  }

  #pick<T>(list: readonly T[]): T {
    return list[Math.floor(this.#options.random() * list.length)] as T;
  }
}

function answerOf(answer: Answer): Told["answer"] {
  if (answer.status < 300) return { kind: "accepted", rev: answer.json.rev };
  const { code, outcome } = answer.json as { code: string; outcome?: string };
  return outcome === "unknown" ? { kind: "unknown" } : { kind: "refused", code };
}

function connectionLost(error: NodeJS.ErrnoException): Told["answer"] {
  if (error.code === undefined) throw error;
  return { kind: "unknown" };
}

/** A small generator with a seed, so that a run can be repeated. */
export function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
