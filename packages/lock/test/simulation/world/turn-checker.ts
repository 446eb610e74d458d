// Judges W1 where nothing fails but processes: how many that began later have a lock first, and
// for how long it stays free while somebody waits for it. A reservation, and a look of the second
// in the queue, are short. After those that stand still one longer look is needed, once for all
// that stopped at a time (docs/decisions/0005).
import type { ClientProcess } from "../engine/client-process.js";
import type { Holding, Violation } from "./lease-checker.js";

/** Of the second in the queue, and its acquisition. */
const SHORT_MS = 100;
/** Looks of the least number of nodes, twice, and acquisitions that collide. */
const LONGEST_MS = 6_000;

/** Who was passed over once has its place again. */
const ROUNDS = 4;

interface Waiting {
  readonly process: ClientProcess;
  readonly resource: string;
  readonly sinceAt: number;
  /** How many had it that began to wait later, since processes stopped, went on or died. */
  overtaken: number;
}

export interface TurnSettings {
  readonly now: () => number;
  /** A lock has that much longer than its holder. */
  readonly driftMs: number;
  /** How many callers there are: each may come before those behind another of its process. */
  readonly callers: number;
  /** Callers of several resources share the nodes now and then, and ask again after a pause. */
  readonly looks: "counted" | "not counted";
  break(promise: Violation["promise"], what: string): void;
}

export class TurnChecker {
  readonly #settings: TurnSettings;
  readonly #waiting = new Set<Waiting>();
  readonly #last = new Map<string, Holding>();
  /** Of the last lock that was found by a look, since processes stopped, went on or died. */
  #longGap: string | undefined;

  constructor(settings: TurnSettings) {
    this.#settings = settings;
  }

  /** A process stopped, went on, died or began. */
  changed(): void {
    this.#longGap = undefined;
    for (const waiting of this.#waiting) waiting.overtaken = 0;
  }

  /** Called when a caller begins to wait. Returns how to say that it does so no more. */
  waits(process: ClientProcess, resources: readonly string[]): () => void {
    const [resource] = resources;
    if (resource === undefined || resources.length > 1) return () => {};
    const waiting = { process, resource, sinceAt: this.#settings.now(), overtaken: 0 };
    this.#waiting.add(waiting);
    return () => this.#waiting.delete(waiting);
  }

  /** To one that began to wait at this moment. */
  given(holding: Holding, sinceAt: number): void {
    for (const resource of holding.resources) {
      this.#judgeGap(resource, holding);
      if (this.#settings.looks === "counted") this.#judgeOrder(resource, holding, sinceAt);
      this.#last.set(resource, holding);
    }
  }

  #judgeOrder(resource: string, { client }: Holding, sinceAt: number): void {
    const most = ROUNDS * this.#settings.callers;
    for (const waiting of this.#waiting) {
      const { state, continuedAt, name } = waiting.process;
      if (waiting.resource !== resource || waiting.sinceAt >= sinceAt || state !== "running" || continuedAt > waiting.sinceAt) continue;
      if (++waiting.overtaken > most)
        this.#settings.break("W1", `${name} waits for ${resource}, and ${most} that began later had it, now ${client.name}`);
    }
  }

  #judgeGap(resource: string, { grantedAt, client }: Holding): void {
    const last = this.#last.get(resource);
    if (last === undefined) return;
    const freeAt = last.endedAt ?? last.validUntilAt + this.#settings.driftMs;
    const gapMs = grantedAt - freeAt;
    if (gapMs <= SHORT_MS || !this.#isAwaited(resource, freeAt)) return;
    const what = `${resource} was free for ${gapMs.toFixed(1)} ms until ${client.name} had it, while others waited`;
    if (gapMs > LONGEST_MS) this.#settings.break("W1", what);
    if (this.#settings.looks === "counted" && this.#longGap !== undefined)
      this.#settings.break("W1", `${what}; before that ${this.#longGap}`);
    this.#longGap = what;
  }

  /** By a process that ran all the while. */
  #isAwaited(resource: string, sinceAt: number): boolean {
    for (const waiting of this.#waiting) {
      const { state, continuedAt } = waiting.process;
      if (waiting.resource === resource && waiting.sinceAt <= sinceAt && state === "running" && continuedAt <= sinceAt) return true;
    }
    return false;
  }
}
