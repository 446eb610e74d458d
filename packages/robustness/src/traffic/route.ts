// A route by which a client's reads and writes reach the store.
import type { Answer, Via, WriteKind } from "../history/records.js";
import type { Document, Seen } from "./document.js";

export interface ReadAnswer extends Answer {
  /** Present if done. */
  readonly seen?: Seen;
}

export interface Write {
  readonly kind: WriteKind;
  readonly resource: string;
  readonly token: number;
  readonly seq: number;
  /** null for a delete. */
  readonly document: Document | null;
  /** Present where the route may refuse by itself when the lease is over. */
  readonly lease?: { readonly token: number; readonly signal: AbortSignal };
}

export interface Route {
  readonly via: Via;
  /** Raises the fence and reads. */
  seal(resource: string, token: number): Promise<ReadAnswer>;
  get(resource: string): Promise<ReadAnswer>;
  write(write: Write): Promise<Answer>;
}
