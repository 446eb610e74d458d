// Where tracing is attached. Until it is, each operation costs one look at a field, and nothing of
// OpenTelemetry is imported.

export type SpanName = "acquire" | "hold" | "renew" | "release";

export interface SpanSubject {
  readonly resources: readonly string[];
  /** Absent: not known yet. */
  readonly token?: number;
}

export interface SpanEnd {
  readonly outcome: string;
  readonly isFailure: boolean;
  readonly token?: number | undefined;
}

export interface OpenSpan {
  end(how: SpanEnd): void;
}

export interface LockSpans {
  /** Under `parent`, or under what the caller is doing now. Undefined: it is not recorded. */
  begin(name: SpanName, subject: SpanSubject, parent?: OpenSpan): OpenSpan | undefined;
}

export const tracing: { spans: LockSpans | undefined } = { spans: undefined };
