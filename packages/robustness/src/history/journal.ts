// What one worker writes down, a line before each call and one after its answer. A line is in the kernel when `write` returns, so
// it survives a SIGKILL of its writer.
import { closeSync, openSync, writeSync } from "node:fs";
import type { Document } from "../traffic/document.js";
import type { Answer, Call, LeaseRecord, Pause } from "./records.js";

export type SentLine = { readonly e: "sent"; readonly at: number } & Call;
export type AnsweredLine = {
  readonly e: "answered";
  readonly id: string;
  readonly at: number;
  readonly document?: Document | null;
} & Answer;
export type LeaseLine = { readonly e: "lease"; readonly resources: readonly string[] } & Pick<
  LeaseRecord,
  "token" | "beganAt" | "grantedAt" | "validUntilAt"
>;

export type Line =
  | SentLine
  | AnsweredLine
  | LeaseLine
  | { readonly e: "renewed"; readonly token: number; readonly resource: string; readonly validUntilAt: number }
  | { readonly e: "told" | "released"; readonly token: number; readonly resource: string; readonly at: number }
  | ({ readonly e: "pause" } & Pause)
  /** The lock's refusal. */
  | { readonly e: "unlocked"; readonly at: number; readonly code: string };

export interface LineWriter {
  write(line: Line): void;
}

export class Journal implements LineWriter {
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

/** The lines of one journal. A last line that a killed writer did not finish is left out. */
export function linesOf(text: string): Line[] {
  const complete = text.slice(0, text.lastIndexOf("\n") + 1);
  return complete
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Line);
}
