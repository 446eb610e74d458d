// Writes down every call before it is made and after it was answered, and names the writes. It changes nothing about them.
import { nowMs } from "../../history/lease-record.js";
import { type Seen, successor } from "./document.js";
import type { Answer, Door, ReadAnswer } from "./door.js";
import type { Journal, SentLine, WriteKind } from "./journal.js";
import type { HeldLease } from "./leases.js";
import type { Tally } from "./words.js";

export interface PlannedWrite {
  readonly kind: WriteKind;
  readonly resource: string;
  readonly seq: number;
  /** What the writer knows of the document: the new one is made from it. */
  readonly on: Seen;
  readonly lease: HeldLease;
  /** Whether the door is told of the lease, and may refuse by itself when it is over, or only of the token. */
  readonly shows: "lease" | "token";
}

export class Recorder {
  readonly #journal: Journal;
  readonly #author: string;
  #count = 0;
  #tally = { done: 0, refused: 0, unknown: 0, overwrote: 0 };

  constructor(journal: Journal, author: string) {
    this.#journal = journal;
    this.#author = author;
  }

  /** A name for one call; a write is known by it for ever. */
  name(): string {
    return `${this.#author}-${++this.#count}`;
  }

  sent(line: Omit<SentLine, "e" | "at">): void {
    this.#journal.write({ e: "sent", at: nowMs(), ...line });
  }

  answered(id: string, { outcome, code, rev, seen }: ReadAnswer): void {
    const facts = { ...(code === undefined ? {} : { code }), ...(rev === undefined ? {} : { rev }) };
    this.#tally[outcome]++;
    this.#journal.write({ e: "answered", id, at: nowMs(), outcome, ...facts, ...(seen === undefined ? {} : { document: seen.document }) });
  }

  /** What was answered since the last time. */
  tally(): Tally {
    const tally = { kind: "tally", ...this.#tally } as const;
    this.#tally = { done: 0, refused: 0, unknown: 0, overwrote: 0 };
    return tally;
  }

  async seal(door: Door, resource: string, token: number): Promise<ReadAnswer> {
    const id = this.name();
    this.sent({ id, kind: "seal", via: door.via, resource, token });
    const answer = await door.seal(resource, token);
    this.answered(id, answer);
    return answer;
  }

  async get(door: Door, resource: string): Promise<ReadAnswer> {
    const id = this.name();
    this.sent({ id, kind: "get", via: door.via, resource });
    const answer = await door.get(resource);
    this.answered(id, answer);
    return answer;
  }

  /** The answer, and if it was done what is stored now. */
  async write(door: Door, planned: PlannedWrite): Promise<Answer & { readonly seen?: Seen }> {
    const { kind, resource, seq, on, lease, shows } = planned;
    const id = this.name();
    const document = kind === "delete" ? null : successor(on.document, id);
    this.sent({ id, kind, via: door.via, resource, token: lease.token, seq, on: basis(on) });
    const shown = shows === "lease" ? { lease } : {};
    const answer = await door.write({ kind, resource, token: lease.token, seq, document, ...shown });
    this.answered(id, answer);
    if (answer.outcome !== "done" || answer.rev === undefined) return answer;
    if (answer.rev > on.rev + 1) this.#tally.overwrote++;
    return { ...answer, seen: { rev: answer.rev, document } };
  }
}

export function basis({ rev, document }: Seen): { readonly rev: number; readonly by: string | null } {
  return { rev, by: document?.by ?? null };
}
