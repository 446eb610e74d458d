// The two servers. However many probes come at once, they cost a few looks at the database and a few
// lists of metrics, and none of their answers is older than its question. The prototypes that make
// the API's fast do not show in its answers, so they are checked here.
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import express from "express";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { createAdminApp } from "../../../src/http/admin.js";
import { Answer, EventStream } from "../../../src/http/answer.js";
import { Bodies } from "../../../src/http/body.js";
import { isIdle } from "../../../src/http/connection-state.js";
import { Dispatcher, RateLimit, RefusalRing, RING_SIZE, type Serving } from "../../../src/http/dispatcher.js";
import type { RequestContext } from "../../../src/http/request.js";
import { httpClassesFor } from "../../../src/http/server.js";
import { Shares } from "../../../src/http/shares.js";

let server: Server;
let url: string;
const made = { ready: 0, metrics: 0 };
let ready: boolean | Error = true;

beforeAll(async () => {
  const app = createAdminApp({
    ready: async () => {
      made.ready += 1;
      if (ready instanceof Error) throw ready;
      return { ready, checks: [] };
    },
    metrics: async () => {
      made.metrics += 1;
      return `made ${made.metrics}`;
    },
  });
  server = createServer(app).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

describe("the admin port", () => {
  test("G6 answers two hundred probes at once from a few looks", async () => {
    const ask = async (path: string) => (await fetch(url + path)).status;
    const startedAt = performance.now();
    const statuses = await Promise.all(Array.from({ length: 200 }, (_, index) => ask(["/ready", "/metrics", "/live"][index % 3] ?? "")));
    expect(new Set(statuses)).toEqual(new Set([200]));
    // At most four a second, and one at each end.
    const most = (performance.now() - startedAt) / 250 + 2;
    expect(made.ready).toBeLessThanOrEqual(most);
    expect(made.metrics).toBeLessThanOrEqual(most);
  });

  test("never answers with what was true before the question, also after a failure", async () => {
    for (const now of [false, true, new Error("on purpose"), true]) {
      ready = now;
      expect((await fetch(`${url}/ready`)).status).toBe(now instanceof Error ? 500 : now ? 200 : 503);
    }
    expect(await (await fetch(`${url}/live`)).json()).toEqual({ live: true });
  });
});

test("a request reaches Express with the prototype that Express is about to set, and keeps all that Express gives", async () => {
  const app = express();
  const api = createServer(httpClassesFor(app));
  const seen: unknown[] = [];
  const look = (...both: object[]) => seen.push(...both.map((each) => Object.getPrototypeOf(each)));
  api.on("request", (request, response) => {
    look(request, response);
    app(request, response);
  });
  app.get("/x", (request, response) => {
    look(request, response);
    response.json({ path: request.path, same: request.app === app });
  });
  await new Promise<void>((resolve) => api.listen(0, "127.0.0.1", resolve));
  const answer = await fetch(`http://127.0.0.1:${(api.address() as AddressInfo).port}/x`);
  expect(await answer.json()).toEqual({ path: "/x", same: true });
  expect(seen.map((prototype, at) => prototype === [app.request, app.response][at % 2])).toEqual([true, true, true, true]);
  await new Promise((resolve) => api.close(resolve));
});

test("G6 an answer that cannot be sent holds up no drain, and its body no budget", async () => {
  const bodies = new Bodies(200);
  const dispatcher = new Dispatcher({ bodies, rateLimit: new RateLimit(0) } as Serving);
  const handler = (context: { heldBytes: number }) => {
    context.heldBytes = bodies.shares.tryTake("nobody", 100, true) ? 100 : 0;
    return new Answer(200, undefined, { headers: ["X-Broken", "two\r\nlines"] });
  };
  const ends: Promise<void>[] = [];
  const api = createServer((request, response) => {
    ends.push(dispatcher.serve({ name: "broken", isOpen: true, handler }, request, response).finally(() => response.destroy()));
    ends[0]?.catch(() => undefined);
  });
  await new Promise<void>((resolve) => api.listen(0, "127.0.0.1", resolve));
  await expect(fetch(`http://127.0.0.1:${(api.address() as AddressInfo).port}/`)).rejects.toThrow();
  await expect(ends[0]).rejects.toThrow(/Invalid character/);
  expect([dispatcher.inFlight, bodies.shares.held]).toEqual([0, 0]);
  await dispatcher.drain();
  await new Promise((resolve) => api.close(resolve));
});

test("G6 a connection that an endless answer is sent on makes room for no other one, until that has ended", async () => {
  const given = {
    bodies: new Bodies(),
    rateLimit: new RateLimit(0),
    metrics: { requestDone: () => {} },
    log: { isLevelEnabled: () => false },
  };
  const dispatcher = new Dispatcher(given as unknown as Serving);
  const begun: { response: ServerResponse; socket: Socket }[] = [];
  const handler = ({ request, response }: RequestContext) => {
    begun.push({ response, socket: request.socket });
    return new EventStream(() => void response.write(":\n\n"));
  };
  const api = createServer((request, response) => void dispatcher.serve({ name: "stream", isOpen: true, handler }, request, response));
  await new Promise<void>((resolve) => api.listen(0, "127.0.0.1", resolve));
  const answer = await fetch(`http://127.0.0.1:${(api.address() as AddressInfo).port}/`);
  const [stream] = begun;
  if (stream === undefined) throw new Error("no stream was begun");
  expect(isIdle(stream.socket)).toBe(false);
  stream.response.end();
  await answer.text();
  await vi.waitFor(() => expect(isIdle(stream.socket)).toBe(true), { timeout: 20_000 });
  api.closeAllConnections();
  await new Promise((resolve) => api.close(resolve));
});

test("G6 one caller takes no more than its share of what all may hold, and has room for small bodies above it", () => {
  const shares = new Shares(1_200);
  const takesAll = (caller: string, isSmall: boolean): number => {
    let taken = 0;
    while (shares.tryTake(caller, 10, isSmall)) taken += 10;
    return taken;
  };
  expect(takesAll("greedy", false)).toBe(800);
  expect(takesAll("greedy", true)).toBe(160);
  expect(takesAll("another", false)).toBe(160);
  expect(takesAll("third", true)).toBe(60);
  shares.give("greedy", 960);
  expect([takesAll("another", false), takesAll("greedy", false)]).toEqual([600, 250]);
});

describe("the writes that a gateway remembers to have refused", () => {
  const refused = {
    resource: "a",
    code: "fencing_token_stale",
    presentedToken: 1,
    currentToken: 2,
    caller: "c",
    address: "",
    requestId: "",
  };

  test("G6 of a flood the newest thousand are kept, and it is said since when none is missing", ({ onTestFinished }) => {
    vi.useFakeTimers({ now: 1_000_000, toFake: ["Date"] });
    onTestFinished(() => void vi.useRealTimers());
    const ring = new RefusalRing();
    const flood = (count: number) => {
      for (let n = 0; n < count; n += 1) {
        vi.advanceTimersByTime(1);
        ring.note({ ...refused, presentedToken: n + 1 });
      }
    };
    flood(RING_SIZE);
    expect(ring.since).toBe(1_000_000);
    for (let n = 0; n < 5; n += 1) ring.note({ ...refused, resource: `another ${n}` });
    const all = ring.newest(Number.POSITIVE_INFINITY, 0, () => true);
    expect(all.map(({ id }) => id)).toEqual(Array.from({ length: RING_SIZE }, (_, index) => RING_SIZE + 5 - index));
    expect(ring.since).toBe(all.at(-1)?.at);
  });

  test("are told newest first, after an id and up to a number", () => {
    const ring = new RefusalRing();
    for (const [n, resource] of ["a", "b", "a", "a"].entries()) ring.note({ ...refused, resource, presentedToken: n + 1 });
    const ids = (limit: number, after: number) => ring.newest(limit, after, ({ resource }) => resource === "a").map(({ id }) => id);
    expect([ids(10, 0), ids(2, 0), ids(10, 1), ids(10, 4)]).toEqual([[4, 3, 1], [4, 3], [4, 3], []]);
  });

  test("G6 equal ones are one, with how many there were, the first time and the last, and leave room for others", ({ onTestFinished }) => {
    vi.useFakeTimers({ now: 1_000_000, toFake: ["Date"] });
    onTestFinished(() => void vi.useRealTimers());
    const ring = new RefusalRing();
    ring.note({ ...refused, resource: "another" });
    for (let n = 0; n < 2 * RING_SIZE; n += 1) {
      vi.advanceTimersByTime(1);
      ring.note({ ...refused, requestId: String(n) });
    }
    const [newest, oldest, ...more] = ring.newest(10, 0, () => true);
    expect(newest).toMatchObject({ times: 2 * RING_SIZE, firstAt: 1_000_001, at: 1_000_000 + 2 * RING_SIZE, id: 2 * RING_SIZE + 1 });
    expect(newest?.requestId).toBe(String(2 * RING_SIZE - 1));
    expect(oldest).toMatchObject({ resource: "another", times: 1 });
    expect([more, ring.since]).toEqual([[], 1_000_000]);
    for (const differs of [{ code: "etag_mismatch" }, { presentedToken: 7 }, { currentToken: 7 }, { caller: "d" }, { address: "::1" }])
      ring.note({ ...refused, ...differs });
    expect(ring.newest(5, 0, () => true).map(({ times }) => times)).toEqual([1, 1, 1, 1, 1]);
  });
});
