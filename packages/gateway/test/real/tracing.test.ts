// Traces of OpenTelemetry through lock, client, gateway and statement, with its real SDK and spans
// that stay in memory.
import { execFileSync } from "node:child_process";
import { type Context, context, propagation, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import { InMemorySpanExporter, NodeTracerProvider, type ReadableSpan, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-node";
import { createGatewayClient, withResource } from "@palisade/client";
import { traceClients } from "@palisade/client/tracing";
import { createLocker, type Locker } from "@palisade/lock";
import { traceLocks } from "@palisade/lock/tracing";
import { traceGateway } from "../../src/observe/tracing.js";
import { afterAll, test as base, beforeAll, describe, eventually, expect, uniqueName } from "../support/fixtures.js";

const patient = { ttlMs: 60_000, waitMs: 50_000, nodeTimeoutMs: 5_000 } as const;
const kept = new InMemorySpanExporter();
const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(kept)] });
const stops: (() => void)[] = [];

beforeAll(() => {
  provider.register();
  stops.push(traceLocks(), traceClients(), traceGateway());
});

afterAll(async () => {
  for (const stop of stops) stop();
  await provider.shutdown();
  // The first provider of a process stays, and test files share processes.
  for (const api of [trace, context, propagation]) api.disable();
});

const test = base
  .extend("locker", async ({ redis }, { onCleanup }): Promise<Locker> => {
    const locker = createLocker({ nodes: redis.urls, namespace: redis.namespace, ...patient });
    onCleanup(() => locker.close());
    return locker;
  })
  .extend("client", ({ gateway }) => createGatewayClient({ url: gateway.url }));

/** The spans that are about this resource, or belong to one that is. */
function spansOf(resource: string): readonly ReadableSpan[] {
  const all = kept.getFinishedSpans();
  const traces = new Set(all.filter(({ attributes }) => attributes["palisade.resource"] === resource).map(traceOf));
  return all.filter((span) => traces.has(traceOf(span)));
}

const traceOf = (span: ReadableSpan): string => span.spanContext().traceId;
const idOf = (span: ReadableSpan | undefined): string | undefined => span?.spanContext().spanId;
const parentOf = (span: ReadableSpan | undefined): string | undefined => span?.parentSpanContext?.spanId;

function only(resource: string, name: string): ReadableSpan {
  const found = spansOf(resource).filter((span) => span.name === name);
  if (found.length !== 1 || found[0] === undefined) throw new Error(`${found.length} spans are called ${name}`);
  return found[0];
}

describe("a trace", () => {
  test("leads from withResource through each call to the gateway's request and its statement", async ({ locker, client }) => {
    const name = uniqueName("traced");
    const { token } = await withResource(locker, client, name, () => ({ n: 1 }));
    await eventually(() => spansOf(name).map((span) => span.name)).toContain("palisade release");
    expect(new Set(spansOf(name).map(traceOf)).size).toBe(1);
    const whole = only(name, "palisade withResource");
    for (const part of ["palisade acquire", "palisade hold", "palisade seal", "palisade put"])
      expect([part, parentOf(only(name, part))]).toEqual([part, idOf(whole)]);
    for (const part of ["palisade acquire", "palisade hold", "palisade seal", "palisade put", "palisade release"])
      expect(only(name, part).attributes).toMatchObject({ "palisade.resource": name, "palisade.token": token });
    expect(parentOf(only(name, "palisade release"))).toBe(idOf(only(name, "palisade hold")));
    const request = only(name, "PUT /v1/resources/{resource}");
    expect(parentOf(request)).toBe(idOf(only(name, "palisade put")));
    expect(request).toMatchObject({ kind: SpanKind.SERVER, status: { code: SpanStatusCode.UNSET } });
    expect(request.attributes).toMatchObject({
      "http.request.method": "PUT",
      "http.route": "/v1/resources/{resource}",
      "http.response.status_code": 201,
      "palisade.resource": name,
      "palisade.token": token,
    });
    const [statement] = spansOf(name).filter((span) => parentOf(span) === idOf(request));
    expect(statement).toMatchObject({ kind: SpanKind.CLIENT, name: expect.stringMatching(/^palisade-(any|known)-(one|each)$/) });
    expect(statement?.attributes).toMatchObject({
      "db.system.name": "postgresql",
      "db.namespace": expect.any(String),
      "server.port": expect.any(Number),
      "palisade.postgres.pid": expect.any(Number),
    });
    expect(JSON.stringify(spansOf(name).map(({ attributes }) => attributes))).not.toContain('"n":1');
  });

  test("G1 of a refused stale write has both tokens, and an error on the client's span", async ({ client }) => {
    const name = uniqueName("stale");
    await client.put(name, { n: 1 }, { token: 12 });
    kept.reset();
    expect(await client.put(name, { n: 2 }, { token: 11 })).toMatchObject({ code: "fencing_token_stale" });
    await eventually(() => spansOf(name).length).toBeGreaterThanOrEqual(3);
    const tokens = { "palisade.token": 11, "palisade.fence": 12, "http.response.status_code": 412 };
    const call = only(name, "palisade put");
    expect(call.attributes).toMatchObject({ ...tokens, "error.type": "fencing_token_stale", "palisade.outcome": "not_applied" });
    expect(call.status).toEqual({ code: SpanStatusCode.ERROR, message: "fencing_token_stale" });
    const request = only(name, "PUT /v1/resources/{resource}");
    expect(request.attributes).toMatchObject({ ...tokens, "palisade.outcome": "fencing_token_stale" });
    expect(request.status.code).toBe(SpanStatusCode.UNSET);
  });

  test("of requests that share a statement leads to it from each, and from it to each", async ({ startGateway }) => {
    const { url } = await startGateway({ statementsInFlight: 1 });
    const client = createGatewayClient({ url });
    await client.put(uniqueName(), 0, { token: 1 });
    const shared = async () => {
      const names = Array.from({ length: 20 }, () => uniqueName("batch"));
      kept.reset();
      await Promise.all(names.map((name) => client.put(name, { n: 1 }, { token: 5 })));
      const isDone = () => names.every((name) => spansOf(name).some((span) => span.name.startsWith("PUT ")));
      await eventually(isDone).toBe(true);
      return kept.getFinishedSpans().filter((span) => Number(span.attributes["db.operation.batch.size"]) > 1);
    };
    let statements = await shared();
    // A slow client may have had each answer before its next request.
    while (statements.length === 0) statements = await shared();
    for (const statement of statements) {
      expect(statement.links).toHaveLength(Number(statement.attributes["db.operation.batch.size"]));
      const requests = kept.getFinishedSpans().filter((span) => statement.links.some(({ context }) => context.spanId === idOf(span)));
      expect(requests.map((span) => span.kind)).toEqual(requests.map(() => SpanKind.SERVER));
      expect(requests).toHaveLength(statement.links.length);
      expect(requests.map(idOf)).toContain(parentOf(statement));
      for (const { links } of requests) expect(links.map(({ context }) => context.spanId)).toContain(idOf(statement));
    }
  });

  test("is continued from the nearer of two parents of one trace, and from neither of two traces", async ({ gateway }) => {
    const ids = { trace: "0af7651916cd43dd8448eb211c80319c", other: "1af7651916cd43dd8448eb211c80319c" };
    const sent = async (name: string, traceparent: string) => {
      await fetch(`${gateway.url}/v1/resources/${name}`, { headers: { traceparent } });
      await eventually(() => spansOf(name).filter((span) => span.kind === SpanKind.SERVER).length).toBe(1);
      const span = only(name, "GET /v1/resources/{resource}");
      return [traceOf(span), parentOf(span)];
    };
    const parents = (other: string) => `00-${ids.trace}-b7ad6b7169203331-01, 00-${other}-b7ad6b7169203332-01`;
    expect(await sent(uniqueName("near"), parents(ids.trace))).toEqual([ids.trace, "b7ad6b7169203332"]);
    const [root, parent] = await sent(uniqueName("two"), parents(ids.other));
    expect([ids.trace, ids.other]).not.toContain(root);
    expect(parent).toBeUndefined();
  });

  test("that the caller does not record is not recorded here, and ends when tracing is stopped", async ({ locker, client }) => {
    const [unsampled, after] = [uniqueName("unsampled"), uniqueName("after")];
    const parent = { traceId: "2af7651916cd43dd8448eb211c80319c", spanId: "b7ad6b7169203331", traceFlags: 0, isRemote: true };
    const within: Context = trace.setSpanContext(context.active(), parent);
    await context.with(within, () => withResource(locker, client, unsampled, () => ({ n: 1 })));
    const again = [traceLocks(), traceClients(), traceGateway()];
    for (const stop of again) stop();
    await withResource(locker, client, after, () => ({ n: 1 }));
    stops.splice(0, stops.length, traceLocks(), traceClients(), traceGateway());
    expect([...spansOf(unsampled), ...spansOf(after)]).toEqual([]);
  });
});

test("nothing of OpenTelemetry is imported by the packages themselves", () => {
  const refusing = `export async function resolve(name, context, next) {
    if (name.startsWith("@opentelemetry")) throw new Error("imported " + name);
    return next(name, context);
  }`;
  const program = `import { register } from "node:module";
    register("data:text/javascript," + ${JSON.stringify(encodeURIComponent(refusing))});
    for (const name of ["lock", "client", "gateway"]) await import("@palisade/" + name);
    const refused = await import("@palisade/client/tracing").catch(({ message }) => message);
    process.stdout.write(String(refused));`;
  const said = execFileSync(process.execPath, ["--input-type=module", "-e", program], { cwd: new URL("../..", import.meta.url) });
  expect(String(said)).toContain("imported @opentelemetry/api");
});
