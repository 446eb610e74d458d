// How a worker reports its steps, in the words that the reader of the demo sees.
import { type Document, monotonicMs, type Refused, UnexpectedOutcome, type WorkerEvent, type WorkerStep } from "./protocol.js";

type Details = Pick<WorkerStep, "token" | "leaseMs">;

export class Reporter {
  readonly #name: string;
  readonly #send: (event: WorkerEvent) => void;

  constructor(name: string, send: (event: WorkerEvent) => void) {
    this.#name = name;
    this.#send = send;
  }

  asks(server: string, text: string, details: Details = {}): void {
    this.#step({ kind: "asks", from: this.#name, to: server, text, ...details });
  }

  answered(server: string, text: string, details: Details = {}): void {
    this.#step({ kind: "answers", from: server, to: this.#name, text, ...details });
  }

  overwrote(server: string, text: string): void {
    this.#step({ kind: "overwrites", from: server, to: this.#name, text });
  }

  refused(server: string, text: string): void {
    this.#step({ kind: "refuses", from: server, to: this.#name, text });
  }

  remarks(text: string, details: Details = {}): void {
    this.#step({ kind: "remarks", from: this.#name, text, ...details });
  }

  holds(text: string, details: Details): void {
    this.#step({ kind: "holds", from: this.#name, text, ...details });
  }

  holdsNoMore(): void {
    this.#step({ kind: "over", from: this.#name, text: `${this.#name} does not hold it any more` });
  }

  /** The last report before the event loop is blocked. */
  isAboutToWrite(): void {
    this.remarks("has checked its lease: good. Is about to write");
    this.#send({ event: "about_to_write" });
  }

  unexpected(text: string): UnexpectedOutcome {
    return new UnexpectedOutcome(`${this.#name} ${text}`);
  }

  #step(step: Omit<WorkerStep, "at">): void {
    this.#send({ event: "step", step: { ...step, at: monotonicMs() } });
  }
}

export function shortened(document: Document | null): string {
  const text = JSON.stringify(document);
  return text.length > 70 ? `${text.slice(0, 69)}…` : text;
}

export function refusalText({ status, code, message, presentedToken, currentToken }: Refused): string {
  if (code === "fencing_token_stale") return `412 ${code}: token ${presentedToken}, the fence is ${currentToken}`;
  return `${status ?? "no answer"} ${code}: ${message}`;
}

export function storedText({ status, rev }: { readonly status: number; readonly rev: number }): string {
  return `${status}: stored as revision ${rev}`;
}
