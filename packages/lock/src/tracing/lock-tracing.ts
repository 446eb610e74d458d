// The lock's operations as spans of OpenTelemetry: an entry of its own, so that only its users need
// the API. Without a registered SDK the API makes spans that record nothing.
import { type Attributes, context, type Span, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import { type LockSpans, type OpenSpan, type SpanEnd, type SpanName, type SpanSubject, tracing } from "../protocol/events.js";

/** A lease is held in this process; everything else asks the nodes. */
const kinds: Readonly<Record<SpanName, SpanKind>> = {
  acquire: SpanKind.CLIENT,
  hold: SpanKind.INTERNAL,
  renew: SpanKind.CLIENT,
  release: SpanKind.CLIENT,
};

/**
 * Makes spans of what all lockers of this process do, with the tracer provider that is registered,
 * until the returned function is called: `palisade acquire`, `palisade hold`, and below it
 * `palisade renew` and `palisade release`, each with resource and token.
 */
export function traceLocks(): () => void {
  const tracer = trace.getTracer("@palisade/lock");
  const spans: LockSpans = {
    begin(name, subject, parent) {
      const above = parent instanceof RecordedSpan ? trace.setSpan(context.active(), parent.span) : context.active();
      const span = tracer.startSpan(`palisade ${name}`, { kind: kinds[name], attributes: attributesOf(subject) }, above);
      return span.isRecording() ? new RecordedSpan(span) : undefined;
    },
  };
  tracing.spans = spans;
  return () => {
    if (tracing.spans === spans) tracing.spans = undefined;
  };
}

class RecordedSpan implements OpenSpan {
  readonly span: Span;

  constructor(span: Span) {
    this.span = span;
  }

  end({ outcome, isFailure, token }: SpanEnd): void {
    this.span.setAttribute("palisade.outcome", outcome);
    if (token !== undefined) this.span.setAttribute("palisade.token", token);
    if (isFailure) this.span.setAttribute("error.type", outcome).setStatus({ code: SpanStatusCode.ERROR, message: outcome });
    this.span.end();
  }
}

function attributesOf({ resources, token }: SpanSubject): Attributes {
  const [resource = ""] = resources;
  return {
    "palisade.resource": resource,
    ...(resources.length > 1 ? { "palisade.resources": [...resources] } : {}),
    ...(token === undefined ? {} : { "palisade.token": token }),
  };
}
