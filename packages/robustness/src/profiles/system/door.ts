// The ways by which a client's reads and writes reach the store, by the same words. Nothing is decided here.
import type { Document, Seen } from "./document.js";
import type { Outcome, Via, WriteKind } from "./journal.js";

export interface Answer {
  readonly outcome: Outcome;
  readonly code?: string;
  readonly rev?: number;
}

export interface ReadAnswer extends Answer {
  /** Present if done. */
  readonly seen?: Seen;
}

export interface Write {
  readonly kind: WriteKind;
  readonly resource: string;
  readonly token: number;
  readonly seq: number;
  /** Absent for a delete. */
  readonly document: Document | null;
  /** Whose lease it is under, where the door may look at that. */
  readonly lease?: { readonly token: number; readonly signal: AbortSignal };
}

export interface Door {
  readonly via: Via;
  /** Raises the fence and reads. */
  seal(resource: string, token: number): Promise<ReadAnswer>;
  get(resource: string): Promise<ReadAnswer>;
  write(write: Write): Promise<Answer>;
}
