// The client's calls as spans of OpenTelemetry, and their trace in the request to the gateway: an
// entry of its own, so that nobody else needs its API. Without a registered SDK the API makes spans
// that record nothing.
import { type Attributes, context, propagation, type Span, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import type { Refusal } from "./results.js";
import { type ClientSpans, type SentCall, tracing } from "./spans.js";

/**
 * Makes spans of what all clients of this process do, with the tracer provider that is registered,
 * until the returned function is called: `palisade put`, `palisade seal` and so on, one for each
 * call with its retries, and `palisade withResource` around them. The gateway is sent the context
 * by the propagator that is registered (`traceparent`).
 */
export function traceClients(): () => void {
  const tracer = trace.getTracer("@palisade/client");
  const spans: ClientSpans = {
    async call(call, send) {
      const span = tracer.startSpan(`palisade ${call.operation}`, { kind: SpanKind.CLIENT, attributes: attributesOf(call) });
      const headers: Record<string, string> = {};
      propagation.inject(trace.setSpan(context.active(), span), headers);
      try {
        const answer = await context.with(trace.setSpan(context.active(), span), () => send(headers));
        if (answer.ok) span.setAttributes({ "http.response.status_code": answer.status, "palisade.rev": answer.rev });
        else noteRefusal(span, answer);
        return answer;
      } catch (error) {
        noteError(span, error);
        throw error;
      } finally {
        span.end();
      }
    },
    withResource(resources, work) {
      const attributes = {
        "palisade.resource": resources[0] ?? "",
        ...(resources.length > 1 ? { "palisade.resources": [...resources] } : {}),
      };
      return tracer.startActiveSpan("palisade withResource", { attributes }, async (span) => {
        try {
          return await work();
        } catch (error) {
          noteError(span, error);
          throw error;
        } finally {
          span.end();
        }
      });
    },
  };
  tracing.spans = spans;
  return () => {
    if (tracing.spans === spans) tracing.spans = undefined;
  };
}

function attributesOf({ method, base, resource, token }: SentCall): Attributes {
  const { protocol, hostname, port } = new URL(base);
  return {
    "http.request.method": method,
    "server.address": hostname,
    "server.port": port === "" ? (protocol === "https:" ? 443 : 80) : Number(port),
    ...(resource === undefined ? {} : { "palisade.resource": resource }),
    ...(token === undefined ? {} : { "palisade.token": token }),
  };
}

/** With the fence that stands where a token was refused. */
function noteRefusal(span: Span, { code, status, currentToken, outcome, attempts }: Refusal): void {
  span.setAttributes({
    "error.type": code,
    "palisade.outcome": outcome,
    "http.request.resend_count": Math.max(0, attempts - 1),
    ...(status === undefined ? {} : { "http.response.status_code": status }),
    ...(currentToken === undefined ? {} : { "palisade.fence": currentToken }),
  });
  span.setStatus({ code: SpanStatusCode.ERROR, message: code });
}

function noteError(span: Span, error: unknown): void {
  const type = codeOf(error);
  span.setAttribute("error.type", type).setStatus({ code: SpanStatusCode.ERROR, message: type });
}

/** A GatewayError or a LockError says more by its code than by its name. */
function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return "error";
  return "code" in error && typeof error.code === "string" ? error.code : error.name;
}
