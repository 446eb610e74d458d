// The gateway's requests and statements as spans of OpenTelemetry: their own entry, so that nobody
// else needs its API. Without a registered SDK the API makes spans that record nothing.
import type { IncomingMessage } from "node:http";
import {
  type Attributes,
  type Context,
  context,
  createContextKey,
  type Link,
  propagation,
  type Span,
  SpanKind,
  SpanStatusCode,
  type TextMapGetter,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { type GatewaySpans, type RequestEnd, type RequestSpan, type ServerProcess, type StatementSpan, tracing } from "../store/spans.js";

/** The requests that share a statement. */
const SHARED = createContextKey("palisade requests of one statement");

/**
 * Makes spans of the requests and statements of all gateways of this process, with the tracer
 * provider that is registered, until the returned function is called. A request continues the trace
 * that it carries (`traceparent`). A statement belongs to its request; one that writes for several
 * requests belongs to the first of them and is linked to all, and each of them to it.
 */
export function traceGateway(): () => void {
  const tracer = trace.getTracer("@palisade/gateway");
  const spans: GatewaySpans = {
    request: (request, path) => requestSpan(tracer, request, path),
    current: () => context.active(),
    together: (requests, work) => context.with(sharedContext(requests as readonly Context[]), work),
    statement: (name) => statementSpan(tracer, name),
  };
  tracing.spans = spans;
  return () => {
    if (tracing.spans === spans) tracing.spans = undefined;
  };
}

function requestSpan(tracer: Tracer, { method = "", headers }: IncomingMessage, path: string | undefined): RequestSpan {
  const attributes = { "http.request.method": method, ...(path === undefined ? {} : { "http.route": path }) };
  const above = propagation.extract(context.active(), headers, oneParent);
  const span = tracer.startSpan(path === undefined ? method : `${method} ${path}`, { kind: SpanKind.SERVER, attributes }, above);
  // What the caller decided not to record is still to be continued by what is done for it.
  const within = trace.setSpan(above, span);
  return { within: (work) => context.with(within, work), end: (how) => endRequest(span, how) };
}

/**
 * A client that is instrumented twice sends two parents, of one trace; the second is the nearer.
 */
const oneParent: TextMapGetter<IncomingMessage["headers"]> = {
  keys: (headers) => Object.keys(headers),
  get(headers, name) {
    const given = headers[name.toLowerCase()];
    if (name !== "traceparent" || typeof given !== "string") return given;
    const parents = given.split(/,\s*/);
    const traces = new Set(parents.map((parent) => parent.slice(0, "00-".length + 32)));
    return traces.size === 1 ? parents.at(-1) : given;
  },
};

function endRequest(span: Span, { status, outcome, requestId, resource, token, fence }: RequestEnd): void {
  span.setAttributes({
    "http.response.status_code": status,
    "palisade.request_id": requestId,
    "palisade.outcome": outcome,
    ...(resource === undefined ? {} : { "palisade.resource": resource }),
    ...(token === undefined ? {} : { "palisade.token": token }),
    ...(fence === undefined ? {} : { "palisade.fence": fence }),
  });
  // By the conventions a refusal of 4xx is the error of the client's span, not of this one.
  if (status >= 500) span.setAttribute("error.type", outcome).setStatus({ code: SpanStatusCode.ERROR, message: outcome });
  span.end();
}

function sharedContext(requests: readonly Context[]): Context {
  const [first = context.active()] = requests;
  if (requests.length < 2) return first;
  const parent = requests.find((request) => trace.getSpan(request)?.isRecording()) ?? first;
  return parent.setValue(SHARED, requests);
}

function statementSpan(tracer: Tracer, name: string): StatementSpan | undefined {
  const shared = (context.active().getValue(SHARED) ?? []) as readonly Context[];
  const requests = shared.flatMap((request) => trace.getSpan(request) ?? []);
  const links = requests.map((request): Link => ({ context: request.spanContext() }));
  const span = tracer.startSpan(name, { kind: SpanKind.CLIENT, attributes: statementAttributes(name, shared.length), links });
  if (!span.isRecording()) return undefined;
  for (const request of requests) request.addLink({ context: span.spanContext() });
  return {
    end({ host, port, database, pid }: ServerProcess, failure) {
      span.setAttributes({
        ...(host === undefined ? {} : { "server.address": host }),
        ...(port === undefined ? {} : { "server.port": port }),
        ...(database === undefined ? {} : { "db.namespace": database }),
        ...(pid === undefined ? {} : { "palisade.postgres.pid": pid }),
      });
      if (failure !== undefined) span.setAttribute("error.type", failure).setStatus({ code: SpanStatusCode.ERROR, message: failure });
      span.end();
    },
  };
}

function statementAttributes(name: string, requests: number): Attributes {
  const batch = requests > 1 ? { "db.operation.batch.size": requests } : {};
  return { "db.system.name": "postgresql", "db.query.summary": name, ...batch };
}
