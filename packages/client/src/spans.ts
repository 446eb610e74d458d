// Where tracing is attached. Until it is, each call costs one look at a field, and nothing of
// OpenTelemetry is imported.
import type { Success } from "./answer.js";
import type { Refusal } from "./results.js";
import type { CallSubject } from "./transport.js";

export interface SentCall extends CallSubject {
  readonly method: string;
  /** Of the gateway. */
  readonly base: string;
}

type Headers = Readonly<Record<string, string>>;

export interface ClientSpans {
  /** Sends with the header fields that carry the trace to the gateway. */
  call(call: SentCall, send: (headers: Headers) => Promise<Success | Refusal>): Promise<Success | Refusal>;
  /** What the work does belongs to it. */
  withResource<T>(resources: readonly string[], work: () => Promise<T>): Promise<T>;
}

export const tracing: { spans: ClientSpans | undefined } = { spans: undefined };
