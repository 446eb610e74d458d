// Records every call before it is made and after it was answered, and names the writes.
import type { LineWriter } from "../history/history.js";
import { type Answer, type Basis, type Call, nowMs, type Seen, successor, type WriteKind } from "../history/records.js";
import { noTally, type Tally } from "./messages.js";
import type { HeldLease } from "./recorded-lock.js";
import type { ReadAnswer, Route } from "./route.js";

interface PlannedWrite {
  readonly kind: WriteKind;
  readonly resource: string;
  readonly seq: number;
  /** What the writer knows of the document: the new one is made from it. */
  readonly on: Seen;
  readonly lease: HeldLease;
  /** With the lease the route may refuse by itself when it is over; with the token it cannot. */
  readonly shows: "lease" | "token";
}

export class Recorder {
  readonly #lines: LineWriter;
  readonly #author: string;
  #count = 0;
  #tally = { ...noTally };

  constructor(lines: LineWriter, author: string) {
    this.#lines = lines;
    this.#author = author;
  }

  /** A name for one call; a write is stored with it. */
  name(): string {
    return `${this.#author}-${++this.#count}`;
  }

  sent(call: Call): void {
    this.#lines.write({ e: "sent", at: nowMs(), ...call });
  }

  answered(id: string, { outcome, code, rev, seen }: ReadAnswer): void {
    const facts = { ...(code === undefined ? {} : { code }), ...(rev === undefined ? {} : { rev }) };
    this.#tally[outcome]++;
    this.#lines.write({ e: "answered", id, at: nowMs(), outcome, ...facts, ...(seen === undefined ? {} : { document: seen.document }) });
  }

  /** What was answered since the last time. */
  tally(): Tally {
    const tally = this.#tally;
    this.#tally = { ...noTally };
    return tally;
  }

  async seal(route: Route, resource: string, token: number): Promise<ReadAnswer> {
    const id = this.name();
    this.sent({ id, kind: "seal", via: route.via, resource, token });
    const answer = await route.seal(resource, token);
    this.answered(id, answer);
    return answer;
  }

  async get(route: Route, resource: string): Promise<ReadAnswer> {
    const id = this.name();
    this.sent({ id, kind: "get", via: route.via, resource });
    const answer = await route.get(resource);
    this.answered(id, answer);
    return answer;
  }

  /** The answer, and if it was done what is stored now. */
  async write(route: Route, planned: PlannedWrite): Promise<Answer & { readonly seen?: Seen }> {
    const { kind, resource, seq, on, lease, shows } = planned;
    const id = this.name();
    const document = kind === "delete" ? null : successor(on.document, id);
    this.sent({ id, kind, via: route.via, resource, token: lease.token, seq, on: basis(on) });
    const shown = shows === "lease" ? { lease } : {};
    const answer = await route.write({ kind, resource, token: lease.token, seq, document, ...shown });
    this.answered(id, answer);
    if (answer.outcome !== "done" || answer.rev === undefined) return answer;
    if (answer.rev > on.rev + 1) this.#tally.overwrote++;
    return { ...answer, seen: { rev: answer.rev, document } };
  }
}

export function basis({ rev, document }: Seen): Basis {
  return { rev, by: document?.by ?? null };
}
