// The stream of the page: what changed, gathered, and never more than a bound however much happens. A
// reader that does not keep up misses rows, not numbers. The credential is looked at every second: a
// stream lasts longer than a key.
import type { ServerResponse } from "node:http";
import { type Caller, visibleTo, type WatchedGateway } from "./gateway.js";
import type { LockWatch } from "./lock-watch.js";
import type { Events, Fault, WriteCounts } from "./messages.js";

const MAX_READERS = 64;
const REFUSALS_EVERY_MS = 250;
const STATE_EVERY_MS = 1_000;
const SECONDS_KEPT = 300;
/** Rows of one event. */
const MAX_ROWS = 50;
const ROWS_AT_FIRST = 200;
/** A reader that has taken nothing for so many seconds is ended. */
const STUCK_SECONDS = 30;
const SILENT_MS = 2_000;
/** How often the checks are looked at while nobody watches: who comes is told for how long one has failed. */
const UNWATCHED_LOOK_MS = 10_000;
const SILENT = { check: "database", detail: "no answer so far" };

interface Reader {
  readonly caller: Caller;
  readonly response: ServerResponse;
  /** The last refusal that it was told of. */
  toldUpTo: number;
  stuckSeconds: number;
}

export class Live {
  readonly #gateway: WatchedGateway;
  readonly #watch: LockWatch | undefined;
  readonly #readers = new Set<Reader>();
  readonly #timers: readonly NodeJS.Timeout[];
  /** What was counted in each of the last seconds. */
  readonly #writes: WriteCounts[] = [];
  #totals: ReadonlyMap<string, number>;
  #faults: readonly { readonly check: string; readonly detail: string; readonly since: number }[] = [];
  /** When the look for faults that is under way began. */
  #lookingSince: number | undefined;
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor(gateway: WatchedGateway, watch: LockWatch | undefined) {
    this.#gateway = gateway;
    this.#watch = watch;
    this.#totals = gateway.writeTotals();
    this.#timers = [
      setInterval(() => void this.#secondIsOver(), STATE_EVERY_MS).unref(),
      setInterval(() => this.#tellRefusals(), REFUSALS_EVERY_MS).unref(),
    ];
    if (watch !== undefined) watch.onNews = () => this.#tellNodes();
  }

  get isFull(): boolean {
    return this.#readers.size >= MAX_READERS;
  }

  begin(caller: Caller, response: ServerResponse): void {
    const { refusals } = this.#gateway;
    const reader = { caller, response, toldUpTo: refusals.count, stuckSeconds: 0 };
    this.#readers.add(reader);
    response.once("close", () => this.#readers.delete(reader));
    this.#watch?.watched();
    void this.#lookForFaults();
    send(reader, "hello", {
      principal: caller.id,
      knowsLock: this.#watch !== undefined,
      writes: this.#writes,
      refusals: refusals.newest(ROWS_AT_FIRST, 0, visibleTo(caller)),
      refusedSince: refusals.since,
    });
    this.#tellState(reader, undefined);
  }

  close(): void {
    for (const timer of this.#timers) clearInterval(timer);
    for (const { response } of this.#readers) response.end();
  }

  async #secondIsOver(): Promise<void> {
    const totals = this.#gateway.writeTotals();
    const more = [...totals].map(([outcome, count]) => [outcome, count - (this.#totals.get(outcome) ?? 0)] as const);
    const writes = Object.fromEntries(more.filter(([, count]) => count > 0));
    this.#totals = totals;
    this.#writes.push(writes);
    if (this.#writes.length > SECONDS_KEPT) this.#writes.shift();
    if (this.#readers.size > 0) this.#watch?.watched();
    if (this.#readers.size > 0 || performance.now() - this.#lookedAt >= UNWATCHED_LOOK_MS) void this.#lookForFaults();
    await Promise.all([...this.#readers].map((reader) => this.#tellSecond(reader, writes)));
  }

  async #lookForFaults(): Promise<void> {
    if (this.#lookingSince !== undefined) return;
    const startedAt = performance.now();
    this.#lookingSince = startedAt;
    this.#lookedAt = startedAt;
    const failed = await this.#gateway.failedChecks();
    this.#lookingSince = undefined;
    const sinceOf = (name: string): number => this.#faults.find(({ check }) => check === name)?.since ?? startedAt;
    this.#faults = failed.map(({ name, detail }) => ({ check: name, detail, since: sinceOf(name) }));
  }

  /** Only Postgres is waited for so long: until it has answered or its time is over, that is what fails. */
  #faultsAt(now: number): readonly Fault[] {
    const since = this.#lookingSince ?? now;
    const isSilent = now - since > SILENT_MS && !this.#faults.some(({ check }) => check === SILENT.check);
    const faults = isSilent ? [{ ...SILENT, since }, ...this.#faults] : this.#faults;
    return faults.map((fault) => ({ check: fault.check, detail: fault.detail, forMs: Math.round(now - fault.since) }));
  }

  async #tellSecond(reader: Reader, writes: WriteCounts): Promise<void> {
    if (!(await reader.caller.isStillAllowed())) reader.response.end();
    else if (this.#tellState(reader, writes)) reader.stuckSeconds = 0;
    else if (++reader.stuckSeconds > STUCK_SECONDS) reader.response.destroy();
  }

  #tellNodes(): void {
    for (const reader of this.#readers) this.#tellState(reader, undefined);
  }

  #tellState(reader: Reader, writes: WriteCounts | undefined): boolean {
    const { fleet } = this.#watch ?? {};
    const faults = this.#faultsAt(performance.now());
    return send(reader, "state", { at: Date.now(), fleet, leases: this.#watch?.leasesFor(reader.caller), writes, faults });
  }

  #tellRefusals(): void {
    const { refusals } = this.#gateway;
    for (const reader of this.#readers) {
      if (reader.response.writableNeedDrain) continue;
      const rows = refusals.newest(MAX_ROWS, reader.toldUpTo, visibleTo(reader.caller));
      reader.toldUpTo = refusals.count;
      if (rows.length > 0) send(reader, "refusals", rows);
    }
  }
}

/** False where the reader has not taken what it was sent before. */
function send<Name extends keyof Events>({ response }: Reader, event: Name, data: Events[Name]): boolean {
  if (response.destroyed || response.writableEnded || response.writableNeedDrain) return false;
  response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  return true;
}
