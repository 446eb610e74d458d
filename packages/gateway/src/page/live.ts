// The stream of the operator's page: what changed, gathered, and never more than a bound however
// much happens. A reader that does not keep up misses rows, not numbers. The credential is looked
// at every second: a stream lasts longer than a key.
import type { ServerResponse } from "node:http";
import { allows, type Principal } from "../http/scopes.js";
import type { LockWatch } from "./lock-watch.js";
import type { Hello, LeasesNews, RefusalNews, RefusalRow, State } from "./messages.js";
import type { RefusalRing } from "./refusal-ring.js";
import type { WriteRates } from "./write-rates.js";

const MAX_READERS = 64;
const REFUSALS_EVERY_MS = 250;
const STATE_EVERY_MS = 1_000;
/** Rows of one event; of a flood the newest are told, and how many there were. */
const MAX_ROWS = 50;
const ROWS_AT_FIRST = 200;
/** A reader that has taken nothing for so many seconds is ended. */
const STUCK_SECONDS = 30;

interface LiveParts {
  readonly ring: RefusalRing;
  readonly rates: WriteRates;
  readonly lock: LockWatch | undefined;
}

interface NewReader {
  readonly principal: Principal;
  readonly response: ServerResponse;
  /** Whether the credential still allows it. */
  readonly isAllowed: () => Promise<boolean>;
  readonly hello: Pick<Hello, "version" | "keepsHistory" | "keepsRefusals">;
}

interface Reader extends NewReader {
  toldUpTo: number;
  stuckSeconds: number;
}

export class Live {
  readonly #parts: LiveParts;
  readonly #readers = new Set<Reader>();
  readonly #timers: readonly NodeJS.Timeout[];

  constructor(parts: LiveParts) {
    this.#parts = parts;
    this.#timers = [
      setInterval(() => void this.#secondIsOver(), STATE_EVERY_MS).unref(),
      setInterval(() => this.#tellRefusals(), REFUSALS_EVERY_MS).unref(),
    ];
    parts.lock?.onNews(() => this.#tellStates());
  }

  get isFull(): boolean {
    return this.#readers.size >= MAX_READERS;
  }

  begin(reader: NewReader): void {
    const { ring, rates, lock } = this.#parts;
    const { response, principal, hello } = reader;
    lock?.watched();
    const entries = ring.newest(ROWS_AT_FIRST, 0, visibleTo(principal));
    const first: Hello = {
      ...hello,
      at: Date.now(),
      principal: principal.id,
      knowsLock: lock !== undefined,
      writes: rates.seconds,
      refusals: { entries, count: entries.length },
    };
    const known: Reader = { ...reader, toldUpTo: ring.count, stuckSeconds: 0 };
    this.#readers.add(known);
    response.once("close", () => this.#readers.delete(known));
    send(known, "hello", first);
    send(known, "state", this.#stateFor(principal, {}));
  }

  close(): void {
    for (const timer of this.#timers) clearInterval(timer);
    for (const { response } of this.#readers) response.end();
  }

  async #secondIsOver(): Promise<void> {
    const { rates, lock } = this.#parts;
    rates.secondIsOver();
    if (this.#readers.size > 0) lock?.watched();
    await Promise.all([...this.#readers].map((reader) => this.#tellStateIfAllowed(reader)));
  }

  #tellStates(): void {
    for (const reader of this.#readers) send(reader, "state", this.#stateFor(reader.principal, {}));
  }

  async #tellStateIfAllowed(reader: Reader): Promise<void> {
    const { response, principal } = reader;
    if (!(await reader.isAllowed())) {
      send(reader, "ended", {});
      response.end();
      return;
    }
    if (send(reader, "state", this.#stateFor(principal, { writes: this.#parts.rates.last }))) reader.stuckSeconds = 0;
    else if (++reader.stuckSeconds > STUCK_SECONDS) response.destroy();
  }

  #tellRefusals(): void {
    const { ring } = this.#parts;
    for (const reader of this.#readers) {
      if (reader.toldUpTo === ring.count || reader.response.writableNeedDrain) continue;
      const isVisible = visibleTo(reader.principal);
      const seesAll = allows(reader.principal, "observe", "");
      const since = reader.toldUpTo;
      reader.toldUpTo = ring.count;
      const entries = ring.newest(seesAll ? MAX_ROWS : Number.POSITIVE_INFINITY, since, isVisible);
      const news: RefusalNews = { entries: entries.slice(0, MAX_ROWS), count: seesAll ? ring.count - since : entries.length };
      if (news.count > 0) send(reader, "refusals", news);
    }
  }

  #stateFor(principal: Principal, second: Pick<State, "writes">): State {
    const { lock } = this.#parts;
    return { at: Date.now(), fleet: lock?.fleet, leases: lock && leasesNews(lock, principal), ...second };
  }
}

function leasesNews(lock: LockWatch, principal: Principal): LeasesNews {
  const { leases: seen, leasesTrouble } = lock;
  const trouble = leasesTrouble === undefined ? {} : { trouble: leasesTrouble };
  if (seen === undefined) return { look: 0, held: 0, more: false, ageMs: undefined, ...trouble };
  const { look, leases, more, at } = seen;
  const held = allows(principal, "observe", "") ? leases.length : leases.filter(visibleTo(principal)).length;
  return { look, held, more, ageMs: Math.round(performance.now() - at), ...trouble };
}

/** Whether the principal may see what is about this resource. */
export function visibleTo(principal: Principal): (about: Pick<RefusalRow, "resource">) => boolean {
  if (allows(principal, "observe", "")) return () => true;
  return ({ resource }) => allows(principal, "observe", resource);
}

/** False where the reader has not taken what it was sent before. */
function send({ response }: Pick<Reader, "response">, event: string, data: object): boolean {
  if (response.destroyed || response.writableEnded || response.writableNeedDrain) return false;
  response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  return true;
}
