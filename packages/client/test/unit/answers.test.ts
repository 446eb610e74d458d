// What counts as the gateway's word, and what is sent again: against answers of the gateway, of what
// stands before it, and of none.
import { createServer } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { parseJson } from "../../src/answer.js";
import { createGatewayClient, type GatewayClient, type GatewayClientOptions, withResource } from "../../src/index.js";

type Step = (init: RequestInit | undefined) => Response | Promise<Response>;

/** What the tries of one client meet, the last step as often as it takes. */
class Meeting {
  tries = 0;
  readonly steps: readonly Step[];

  constructor(steps: readonly Step[]) {
    this.steps = steps;
  }

  next(init: RequestInit | undefined): Response | Promise<Response> {
    return (this.steps[Math.min(this.tries++, this.steps.length - 1)] as Step)(init);
  }
}

/** A server on this machine that lets each client meet its own steps: by the first part of the path. */
const meetings: Meeting[] = [];
const server = createServer(async (request, response) => {
  const gone = new AbortController();
  response.on("close", () => gone.abort());
  request.resume();
  const meeting = meetings[Number(request.url?.split("/")[1])] as Meeting;
  try {
    const answer = await meeting.next({ method: request.method ?? "", signal: gone.signal });
    response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(Buffer.from(await answer.arrayBuffer()));
  } catch {
    request.destroy();
  }
});
beforeAll(() => new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve)));
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

/** Both ways of a request: a fetch of the caller's, and the connections of node:http. */
const ways = {
  fetch: (meeting: Meeting): Pick<GatewayClientOptions, "url" | "fetch"> => ({
    url: "http://g",
    fetch: async (_url, init) => {
      expect(init?.redirect).toBe("error");
      return await meeting.next(init);
    },
  }),
  "node:http": (meeting: Meeting): Pick<GatewayClientOptions, "url"> => ({
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/${meetings.push(meeting) - 1}`,
  }),
};

type Way = keyof typeof ways;

/** A client whose tries meet these steps, and how many there were. */
function meeting(way: Way, ...steps: readonly Step[]): { readonly client: GatewayClient; readonly tries: () => number } {
  const met = new Meeting(steps);
  const retry = { attempts: 6, firstPauseMs: 1, longestPauseMs: 2 };
  return { client: createGatewayClient({ ...ways[way](met), retry }), tries: () => met.tries };
}

const json = { "content-type": "application/json" };
const saying =
  (status: number, body: string | null = null, headers: Record<string, string> = {}): Step =>
  () =>
    new Response(body, { status, headers });
const page = (status: number): Step => saying(status, `<html>${status}</html>`, { "content-type": "text/html" });
const stored = (resource: string, token: number, rev: number, tag = `"${rev}"`): Step =>
  saying(200, JSON.stringify({ resource, token, rev }), { ...json, etag: tag, "fencing-token": String(token) });
const problem = (status: number, code: string, facts: object = {}): Step =>
  saying(status, JSON.stringify({ type: `urn:palisade:problem:${code}`, status, code, detail: "no", ...facts }), {
    "content-type": "application/problem+json",
  });
const lost: Step = () => Promise.reject(new TypeError("fetch failed", { cause: { code: "ECONNRESET" } }));
const neverSent: Step = () => Promise.reject(new TypeError("fetch failed", { cause: { code: "ECONNREFUSED" } }));
const hangs: Step = (init) => new Promise((_resolve, reject) => init?.signal?.addEventListener("abort", () => reject(init.signal?.reason)));

const puts = [{ op: "put", resource: "r", value: 1 }] as const;
const calls: Readonly<Record<string, (client: GatewayClient) => Promise<{ readonly ok: boolean }>>> = {
  put: (client) => client.put("r", 1, { token: 5 }),
  patch: (client) => client.patch("r", {}, { token: 5 }),
  delete: (client) => client.delete("r", { token: 5 }),
  get: (client) => client.get("r"),
  "get of another revision": (client) => client.get("r", { ifNoneMatch: 7 }),
  seal: (client) => client.seal("r", { token: 5 }),
  transaction: (client) => client.transaction(puts, { token: 5 }),
  list: (client) => client.list(),
  history: (client) => client.history("r"),
  refused: (client) => client.refused(),
  fence: (client) => client.fence("r"),
  changeFence: (client) => client.changeFence("r", { action: "raise", token: 5, reason: "drill" }),
};
const strangers: Readonly<Record<string, Step>> = {
  "a log-in page": page(200),
  "nothing, with 204": saying(204),
  "nothing, with 201": saying(201, ""),
  "an empty object": saying(200, "{}", json),
  null: saying(200, "null", json),
  "half an object": saying(200, '{"resource":"r"', { ...json, "fencing-token": "5" }),
  "a document of another service": saying(200, '{"resource":"r","token":5,"rev":1}', { ...json, etag: '"1"' }),
  "the text of a receipt": saying(200, '{"resource":"r","token":5}', { "fencing-token": "5" }),
  "a cached revision": saying(304, null, { etag: '"6"', "fencing-token": "5" }),
  "a stored write of another resource": (init) => (init?.method === "GET" ? page(200) : stored("other", 5, 1))(init),
  "a stored write of another token": (init) => (init?.method === "GET" ? page(200) : stored("r", 4, 1))(init),
  "an entity tag that counts nothing": saying(200, '{"resource":"r","token":5,"rev":1}', { ...json, etag: '"abc"' }),
};

describe.each(Object.keys(ways) as Way[])("over %s:", (way) => {
  describe.for(Object.entries(strangers))("G3 %s is no success", ([, stranger]) => {
    test.for(Object.entries(calls))("of %s", async ([, call]) => {
      const { client, tries } = meeting(way, stranger);
      expect(await call(client)).toMatchObject({ ok: false, code: "answer_not_understood", outcome: "unknown" });
      expect(tries()).toBe(1);
    });
  });

  describe("withResource", () => {
    const sealed = saying(200, '{"resource":"r","token":5,"rev":1,"value":{"paid":false}}', { ...json, "fencing-token": "5", etag: '"1"' });
    const locker = {
      acquire: async () => ({ token: 5, signal: new AbortController().signal, [Symbol.asyncDispose]: async () => undefined }),
    };
    interface Order {
      paid: boolean;
    }

    test("G3 does not report as stored what a proxy says it has stored", async () => {
      const { client } = meeting(way, sealed, page(200));
      const work = withResource(locker, client, "r", () => ({ paid: true }));
      await expect(work).rejects.toMatchObject({ name: "GatewayError", code: "answer_not_understood", outcome: "unknown" });
    });

    test("throws where the routine changes its document in place and returns nothing for it", async () => {
      const { client, tries } = meeting(way, sealed);
      const pay = (order: Order | null): undefined => {
        if (order !== null) order.paid = true;
      };
      const changed = "the routine changed the document of r and returned nothing for it: return the document to store it";
      await expect(withResource<Order>(locker, client, "r", pay as never)).rejects.toThrow(changed);
      await expect(withResource<[Order]>(locker, client, ["r"], ([order]) => pay(order))).rejects.toThrow(changed);
      await expect(withResource<[Order]>(locker, client, ["r"], ([order]) => [pay(order)])).rejects.toThrow(changed);
      expect(tries()).toBe(3); // Three seals.
      expect(await withResource<Order>(locker, client, "r", (() => undefined) as never)).toEqual({ value: undefined, rev: 1, token: 5 });
    });
  });

  test.for<readonly [string, Step]>([
    ["of another media type", saying(404, '{"type":"urn:palisade:problem:not_found","status":404,"code":"not_found","detail":"no"}', json)],
    ["with codes like those of the gateway", problem(409, "contention", { type: "https://other.example/contention" })],
    ["under another status", problem(409, "contention", { status: 412 })],
    ["with a code that the gateway has not", problem(409, "conflict")],
    ["about another resource", problem(412, "fencing_token_stale", { resource: "other" })],
    ["that is a page", page(500)],
  ])("G3 a refusal %s is not the gateway's word that nothing was applied", async ([, step]) => {
    const { client, tries } = meeting(way, step);
    expect(await client.put("r", 1, { token: 5, seq: 1 })).toMatchObject({ ok: false, code: "answer_not_understood", outcome: "unknown" });
    expect(tries()).toBe(1);
  });

  test("a revision is understood where the entity tag was weakened on the way", async () => {
    expect(await meeting(way, stored("r", 5, 3, 'W/"3"')).client.put("r", 1, { token: 5 })).toMatchObject({ ok: true, rev: 3 });
  });

  describe("what is sent again", () => {
    const used = (seq: number): Step => problem(409, "sequence_out_of_order", { resource: "r", currentSeq: seq, currentETag: '"9"' });
    const numbered = { token: 5, seq: 2 };

    test.for<readonly [string, readonly Step[], object, object]>([
      ["G3 nothing that was lost and has no number", [lost], { token: 5 }, { code: "connection_failed", outcome: "unknown", attempts: 1 }],
      [
        "G3 nothing that a balancer answered and has no number",
        [page(502)],
        { token: 5 },
        { outcome: "unknown", attempts: 1, status: 502 },
      ],
      ["G3 what may be lost, with its number", [lost, page(502), page(503), page(504), stored("r", 5, 3)], numbered, { ok: true, rev: 3 }],
      ["G3 so that what was stored before is told by its number", [lost, used(2)], numbered, { ok: true, rev: 9, replayed: true }],
      ["G3 not so where a later write has the number", [lost, used(3)], numbered, { code: "sequence_out_of_order", outcome: "unknown" }],
      ["G3 not so at the first try", [used(2)], numbered, { code: "sequence_out_of_order", outcome: "not_applied", attempts: 1 }],
      ["G1 no stale token", [problem(412, "fencing_token_stale")], numbered, { outcome: "not_applied", attempts: 1 }],
      [
        "G3 and a refusal says nothing of the tries before",
        [lost, problem(412, "fencing_token_stale")],
        numbered,
        { code: "fencing_token_stale", outcome: "unknown", attempts: 2 },
      ],
      ["what is not applied", [problem(503, "unavailable"), problem(409, "contention"), stored("r", 5, 1)], { token: 5 }, { ok: true }],
      ["a failure of the gateway never", [problem(500, "internal")], numbered, { code: "internal", outcome: "unknown", attempts: 1 }],
      ["all no more often than asked for", [page(502)], numbered, { code: "answer_not_understood", outcome: "unknown", attempts: 6 }],
    ])("%s", async ([, steps, options, outcome]) => {
      expect(await meeting(way, ...steps).client.put("r", 1, options as { token: number })).toMatchObject(outcome);
    });

    test("G3 a transaction only with a number, and it is told by it", async () => {
      const again = meeting(way, lost, problem(409, "sequence_out_of_order", { operation: 0, currentSeq: 2, currentRevs: [9] }));
      expect(await again.client.transaction(puts, numbered)).toEqual({
        ok: true,
        results: [{ resource: "r", token: 5, rev: 9 }],
        replayed: true,
      });
      const once = meeting(way, lost);
      expect(await once.client.transaction(puts, { token: 5 })).toMatchObject({ outcome: "unknown", attempts: 1 });
      expect(once.tries()).toBe(1);
    });

    test("G3 a try that is not answered in time is unknown", async () => {
      expect(await meeting(way, hangs).client.put("r", 1, { token: 5, timeoutMs: 5 })).toMatchObject({
        code: "timed_out",
        outcome: "unknown",
        attempts: 1,
      });
    });

    test("L1 nothing under a lease that is over, and nothing more once it ends", async () => {
      const over = { token: 5, signal: AbortSignal.abort() };
      const unsent = meeting(way, stored("r", 5, 1));
      for (const call of [unsent.client.put("r", 1, { lease: over }), unsent.client.seal("r", { lease: over })])
        expect(await call).toMatchObject({ code: "lease_lost", outcome: "not_applied", attempts: 0 });
      expect(unsent.tries()).toBe(0);
      const lease = new AbortController();
      const ends: Step = (init) => {
        lease.abort();
        return lost(init);
      };
      const written = meeting(way, ends, stored("r", 5, 1)).client.put("r", 1, { lease: { token: 5, signal: lease.signal }, seq: 1 });
      expect(await written).toMatchObject({ ok: false, outcome: "unknown", attempts: 1 });
    });
  });
});

describe("over fetch, told in its words:", () => {
  test("what was never sent is sent again, no more often and no longer than asked for", async () => {
    expect(await meeting("fetch", neverSent, stored("r", 5, 1)).client.put("r", 1, { token: 5 })).toMatchObject({ ok: true });
    const refused = { code: "connection_failed", outcome: "not_applied", attempts: 6 };
    expect(await meeting("fetch", neverSent).client.put("r", 1, { token: 5 })).toMatchObject(refused);
    const client = createGatewayClient({ url: "http://g", retry: { forMs: 1 }, fetch: async () => await neverSent(undefined) });
    expect(await client.get("r")).toMatchObject({ code: "connection_failed", attempts: 1 });
  });

  test("what came is named, with its first bytes; so is an address where nothing listens, and a redirect", async () => {
    const detail = async (step: Step): Promise<unknown> => await meeting("fetch", step).client.put("r", 1, { token: 5 });
    expect(await detail(page(200))).toMatchObject({
      detail:
        'Status 200 came from http://g, and has no Fencing-Token. It begins with "<html>200</html>". Is it the gateway\'s API? Its probes have another port.',
    });
    expect(await detail(neverSent)).toMatchObject({ detail: "The gateway at http://g could not be reached: ECONNREFUSED." });
    const redirected: Step = () => Promise.reject(new TypeError("fetch failed", { cause: new Error("unexpected redirect") }));
    expect(await detail(redirected)).toMatchObject({ code: "answer_not_understood", detail: expect.stringContaining("redirects") });
  });
});

describe("over node:http, on the wire:", () => {
  test("what was never sent is sent again, and so reaches a gateway that begins to listen", async () => {
    const late = createServer((_request, response) => {
      response.writeHead(200, { ...json, etag: '"1"', "fencing-token": "5" }).end('{"resource":"r","token":5,"rev":1}');
    });
    const port = await freePort();
    const client = (retry: GatewayClientOptions["retry"]) => createGatewayClient({ url: `http://127.0.0.1:${port}`, retry });
    const refused = await client({ attempts: 2, firstPauseMs: 1 }).put("r", 1, { token: 5 });
    expect(refused).toMatchObject({ code: "connection_failed", outcome: "not_applied", attempts: 2 });
    expect(refused).toMatchObject({ detail: `The gateway at http://127.0.0.1:${port} could not be reached: ECONNREFUSED.` });
    const written = client({ firstPauseMs: 1, longestPauseMs: 5 }).put("r", 1, { token: 5 });
    late.listen(port, "127.0.0.1");
    expect(await written).toMatchObject({ ok: true, rev: 1 });
    late.closeAllConnections();
    late.close();
  });

  test("a redirect is not followed", async () => {
    const { client, tries } = meeting("node:http", saying(307, null, { location: "/0/v1/resources/r" }));
    const answer = await client.put("r", 1, { token: 5, seq: 1 });
    expect(answer).toMatchObject({ code: "answer_not_understood", outcome: "unknown", detail: expect.stringContaining("redirects") });
    expect(tries()).toBe(1);
  });

  test("an answer that a proxy has compressed is read", async () => {
    const text = gzipSync('{"resource":"r","token":5,"rev":3}');
    const packed: Step = () =>
      new Response(text, { headers: { ...json, etag: 'W/"3"', "fencing-token": "5", "content-encoding": "gzip" } });
    expect(await meeting("node:http", packed).client.put("r", 1, { token: 5 })).toMatchObject({ ok: true, rev: 3 });
  });

  test.for([
    ["half an answer", "HTTP/1.1 200 OK\r\ncontent-length: 100\r\nfencing-token: 5\r\n\r\n{"],
    ["half a head", "HTTP/1.1 200 OK\r\n"],
    ["what is not HTTP", "-ERR unknown command\r\n"],
    ["another protocol", "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n"],
  ] as const)("G3 %s is no answer", async ([, text]) => {
    const odd = createTcpServer((socket) => socket.on("error", () => {}).once("data", () => socket.end(text)));
    await new Promise<void>((resolve) => void odd.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(odd.address() as AddressInfo).port}`;
    const answer = await createGatewayClient({ url }).put("r", 1, { token: 5 });
    expect(answer).toMatchObject({ code: "connection_failed", outcome: "unknown" });
    odd.close();
  });

  test("a call that its caller gives up ends its connection", async () => {
    const caller = new AbortController();
    let ended: Promise<unknown> | undefined;
    const noticed: Step = (init) => {
      ended = new Promise((resolve) => init?.signal?.addEventListener("abort", resolve));
      caller.abort();
      return new Promise(() => {});
    };
    const answer = meeting("node:http", noticed).client.put("r", 1, { token: 5, signal: caller.signal });
    expect(await answer).toMatchObject({ code: "aborted", outcome: "unknown" });
    await ended;
  });

  test("calls one after the other share a connection", async () => {
    const counted = new Set<unknown>();
    const one = createServer((request, response) => {
      counted.add(request.socket);
      response.writeHead(200, { ...json, etag: '"1"', "fencing-token": "5" }).end('{"resource":"r","token":5,"rev":1}');
    });
    await new Promise<void>((resolve) => void one.listen(0, "127.0.0.1", resolve));
    const client = createGatewayClient({ url: `http://127.0.0.1:${(one.address() as AddressInfo).port}` });
    for (let i = 0; i < 5; i++) expect(await client.put("r", i, { token: 5 })).toMatchObject({ ok: true });
    expect(counted.size).toBe(1);
    one.closeAllConnections();
    one.close();
  });
});

async function freePort(): Promise<number> {
  const server = createTcpServer();
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

test("G3 a document has the keys that were stored, also where JSON.parse misreads one with an escape", () => {
  const parse = JSON.parse;
  // As Node 24 to 26 do, once they have met the key "\\".
  vi.spyOn(JSON, "parse").mockImplementation((text, reviver) => parse(text.replaceAll('"\\n":', '"\\\\":'), reviver));
  onTestFinished(() => void vi.restoreAllMocks());
  const text = String.raw`{"a":1,"\n":[{"\\":"\u00e9\ud83d\ude00\"\\\n","\n":"\\n"}],"__proto__":{"\u0041\/":null,"":0},"b":"\b"}`;
  const document = parseJson(text);
  vi.restoreAllMocks();
  expect(JSON.stringify(document)).toBe(String.raw`{"a":1,"\n":[{"\\":"é😀\"\\\n","\n":"\\n"}],"__proto__":{"A/":null,"":0},"b":"\b"}`);
  expect(parseJson('{"\\\\":1}')).toEqual({ "\\": 1 });
  expect(parseJson('{"a":1,"\\n":2,"b":3}')).toEqual({ a: 1, "\n": 2, b: 3 });
});
