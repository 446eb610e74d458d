// What a process of a run writes down, line by line, before and after each thing it does. A line is with the kernel when `write` returns, so it outlives a kill -9 of its
// writer. Plain data; nobody judges here.
import { closeSync, openSync, writeSync } from "node:fs";
import type { Stall } from "../../history/lease-record.js";
import type { Document } from "./document.js";

export type WriteKind = "put" | "patch" | "delete";
export type CallKind = WriteKind | "seal" | "get" | "guarded" | "forged" | "malformed";
export type Via = "client" | "withResource" | "fetch" | "transaction" | "guard" | "unfenced" | "stranger";

/** Before anything leaves. */
export interface SentLine {
  readonly e: "sent";
  /** Unique in the run. A write stores it in the document. */
  readonly id: string;
  readonly at: number;
  readonly kind: CallKind;
  readonly via: Via;
  readonly resource: string;
  readonly token?: number;
  readonly seq?: number;
  /** The revision, and the writer, of the document that this write was made from. */
  readonly on?: { readonly rev: number; readonly by: string | null };
  /** Writes of one transaction. */
  readonly group?: string;
}

/** done: told so. refused: told that nothing was changed. unknown: anything else. */
export type Outcome = "done" | "refused" | "unknown";

export interface AnsweredLine {
  readonly e: "answered";
  readonly id: string;
  readonly at: number;
  readonly outcome: Outcome;
  readonly code?: string;
  readonly rev?: number;
  /** What a read showed. */
  readonly document?: Document | null;
}

export interface LeaseLine {
  readonly e: "lease";
  readonly resources: readonly string[];
  readonly token: number;
  readonly beganAt: number;
  readonly grantedAt: number;
  readonly validUntilAt: number;
}

export type Line =
  | SentLine
  | AnsweredLine
  | LeaseLine
  | { readonly e: "renewed"; readonly token: number; readonly resource: string; readonly validUntilAt: number }
  | { readonly e: "told" | "released"; readonly token: number; readonly resource: string; readonly at: number }
  | ({ readonly e: "stall" } & Stall)
  | { readonly e: "unlocked"; readonly at: number; readonly code: string };

export class Journal {
  readonly #file: number;

  constructor(path: string) {
    this.#file = openSync(path, "a");
  }

  write(line: Line): void {
    writeSync(this.#file, `${JSON.stringify(line)}\n`);
  }

  close(): void {
    closeSync(this.#file);
  }
}

/** The lines of one journal. What a killed writer left of its last line is none. */
export function linesOf(text: string): Line[] {
  const complete = text.slice(0, text.lastIndexOf("\n") + 1);
  return complete
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Line);
}
