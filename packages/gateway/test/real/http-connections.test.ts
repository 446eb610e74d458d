// Connections that are slow, broken, half closed or pipelined: every request gets its own answer,
// or none.
import { makeApiKey } from "@palisade/gateway";
import { MAX_ADMIN_CONNECTIONS } from "../../src/http/admin.js";
import { describe, eventually, expect, test, uniqueName } from "../support/fixtures.js";
import { holderOf } from "../support/sql.js";
import { get, put, RawConnection } from "../support/wire.js";

interface Parts {
  readonly token?: number;
  readonly length?: number;
  readonly more?: string;
}

const host = "HTTP/1.1\r\nHost: localhost\r\n";

function head(name: string, { token = 5, length = 2, more = "" }: Parts = {}): string {
  return `PUT /v1/resources/${name} ${host}Content-Type: application/json\r\nFencing-Token: ${token}\r\nContent-Length: ${length}\r\n${more}\r\n`;
}

const statusLine = (status: number): RegExp => new RegExp(`^HTTP/1\\.1 ${status} `, "m");
const statusesOf = ({ received }: RawConnection) => [...received.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status);

/** What comes back until the connection is closed. */
async function exchanged(url: string, bytes: string | Buffer): Promise<RawConnection> {
  const connection = new RawConnection(url);
  connection.send(bytes);
  await connection.closed;
  return connection;
}

describe("a slow client", () => {
  const impatient = { requestTimeoutMs: 200, headersTimeoutMs: 200 } as const;

  test("G6 that does not send all of its header or body is told so in time, and nothing is stored", async ({
    startGateway,
    gateway: patient,
  }) => {
    const { url, adminUrl } = await startGateway(impatient);
    const idle = await startGateway({ ...impatient, idleTimeoutMs: 200 });
    const name = uniqueName();
    const [header, body, onAdminPort, silent] = await Promise.all([
      exchanged(url, `PUT /v1/resources/x HTTP/1.1\r\nHost: localh`),
      exchanged(url, `${head(name, { length: 100 })}{"a":`),
      exchanged(adminUrl, "GET /ready HTTP/1.1\r\nHost: localh"),
      exchanged(idle.url, ""),
    ]);
    for (const { received } of [header, body, onAdminPort]) expect(received).toMatch(statusLine(408));
    expect(header.received).toContain('"code":"request_timeout"');
    expect(silent.received).toMatch(/^$|408/);
    expect(await get(patient.url, name)).toMatchObject({ status: 404 });
  });

  test("G6 that keeps a body coming by the byte is told so long before the time for a request is over, and another is heard to its end", async ({
    startGateway,
  }) => {
    const gateway = await startGateway({ bodyLookMs: 500 });
    const [slow, steady] = [new RawConnection(gateway.url), new RawConnection(gateway.url)];
    const chunked = head(uniqueName()).replace("Content-Length: 2", "Transfer-Encoding: chunked");
    const keepsComing = (connection: RawConnection, piece: string): NodeJS.Timeout => {
      connection.send(chunked);
      return setInterval(() => connection.send(`${piece.length.toString(16)}\r\n${piece}\r\n`), 25);
    };
    const timers = [keepsComing(slow, " "), keepsComing(steady, " ".repeat(4_096))];
    await slow.receives(statusLine(408));
    expect(slow.received).toMatch(/"code":"request_timeout".*"outcome":"not_applied"/);
    for (const timer of timers) clearInterval(timer);
    steady.send("2\r\n{}\r\n0\r\n\r\n");
    await steady.receives(statusLine(201));
    for (const { socket } of [slow, steady]) socket.destroy();
  });

  test("that was refused and never sends the rest is disconnected in time, after one answer", async ({ startGateway }) => {
    const gateway = await startGateway(impatient);
    const refused = async (): Promise<RawConnection> => {
      const connection = await exchanged(gateway.url, `PUT /v1/resources/x ${host}Connection: close\r\nContent-Length: 100\r\n\r\n`);
      return connection.received.startsWith("HTTP/1.1 408 ") ? refused() : connection; // On a busy machine the header itself may be late.
    };
    const connection = await refused();
    expect(statusesOf(connection)).toEqual(["428"]);
  });
});

describe("a broken request", () => {
  test("that ends in the middle of its body stores nothing, whether its connection is half closed or reset", async ({ gateway }) => {
    const [ended, reset] = [uniqueName(), uniqueName()];
    const half = new RawConnection(gateway.url);
    half.send(`${head(ended, { length: 100 })}{}`);
    half.finish();
    await half.closed;
    expect(half.received).toMatch(statusLine(400));
    const connection = new RawConnection(gateway.url);
    connection.send(head(reset, { length: 100, more: "Expect: 100-continue\r\n" }));
    await connection.receives(statusLine(100));
    connection.send("{}");
    connection.socket.resetAndDestroy();
    await connection.closed;
    for (const name of [ended, reset]) expect(await get(gateway.url, name)).toMatchObject({ status: 404 });
  });

  test("that is no HTTP, or may be read in two ways, is refused as bytes", async ({ gateway }) => {
    const put = `PUT /v1/resources/x ${host}`;
    for (const [bytes, status, code] of [
      ["\u0000\u0001\u0002\r\n\r\n", 400, "request_malformed"],
      ["\u0016\u0003\u0001\u0002\u0000\u0001", 400, "request_malformed"], // TLS.
      [`${put}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}`, 400, "request_malformed"],
      [`${put}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, 400, "request_malformed"],
      [head("x").replace("Content-Length: 2", "Transfer-Encoding: chunked").concat("zz\r\n"), 400, "request_malformed"],
      [`${put}X-A: ${"a".repeat(40_000)}\r\n\r\n`, 431, "headers_too_many"],
      [`${put}Fencing Token: 5\r\n\r\n`, 400, "request_malformed"],
      ["CONNECT example.org:443 HTTP/1.1\r\nHost: a\r\n\r\n", 405, "method_not_allowed"],
      ["GET /v1/resources/x HTTP/1.1\r\nConnection: close\r\n\r\n", 400, "request_malformed"],
      ["GET /openapi.json HTTP/1.1\r\nConnection: close\r\n\r\n", 400, "request_malformed"],
      [`GET /v1/resources/x ${host}Host: other\r\nConnection: close\r\n\r\n`, 400, "request_malformed"],
    ] as const) {
      const { received } = await exchanged(gateway.url, Buffer.from(bytes, "latin1"));
      expect([bytes, received]).toEqual([bytes, expect.stringMatching(statusLine(status))]);
      expect(received).toMatch(/^Content-Type: application\/problem\+json\r$/m);
      const [, id] = received.match(/^X-Request-Id: (.+)\r$/m) ?? [];
      expect(JSON.parse(received.slice(received.indexOf("\r\n\r\n")))).toMatchObject({ code, status, requestId: id });
    }
    const { received } = await exchanged(gateway.adminUrl, "GET /ready HTTP/1.1\r\nConnection: close\r\n\r\n");
    expect(received).toMatch(/^HTTP\/1\.1 400 .*"code":"request_malformed"/s);
  });

  test("may come in chunks, and is then read to the limit and no further", async ({ startGateway }) => {
    const gateway = await startGateway({ bodyLimitBytes: 1_000 });
    const name = uniqueName();
    const chunked = head(name).replace("Content-Length: 2", "Transfer-Encoding: chunked");
    const good = new RawConnection(gateway.url);
    good.send(`${chunked}5\r\n{"a":\r\n2\r\n1}\r\n0\r\n\r\n`);
    await good.receives(statusLine(201));
    const large = new RawConnection(gateway.url);
    large.send(`${chunked}3e9\r\n${" ".repeat(1_001)}\r\n`);
    await large.receives(statusLine(413));
    for (const connection of [good, large]) connection.socket.destroy();
  });
});

test("a client that closes its half after a whole request still gets the answer", async ({ gateway }) => {
  const connection = new RawConnection(gateway.url);
  connection.send(`${head(uniqueName())}{}`);
  connection.finish();
  await connection.closed;
  expect(connection.received).toMatch(statusLine(201));
});

describe("requests in a row on one connection", () => {
  test("G3 a write that is followed by garbage is never answered by the refusal of the garbage", async ({ gateway }) => {
    for (let round = 0; round < 20; round++) {
      const name = uniqueName();
      const [first] = statusesOf(await exchanged(gateway.url, `${head(name)}{}\u0000garbage\r\n\r\n`));
      if (first !== undefined) expect([first, (await get(gateway.url, name)).status]).toEqual(["201", 200]);
    }
  });

  const withoutToken = `PUT /v1/resources/x ${host}Content-Type: application/json\r\n`;
  const nowhere = `GET /nowhere ${host}\r\n`;
  test.for([
    ["of a write without a token", `${withoutToken}Content-Length: 2\r\n\r\n{}`, ["428", "405"]],
    ["of a write without a token whose body is garbage", `${withoutToken}Transfer-Encoding: chunked\r\n\r\n`, ["428"]],
    ["of two paths that are not there", nowhere.repeat(2), ["404", "404", "405"]],
  ] as const)("G3 the refusal %s is not lost when garbage follows in the same packet", async ([, refused, statuses], { gateway }) => {
    expect(statusesOf(await exchanged(gateway.url, `${refused}\u0000garbage\r\n\r\n`))).toEqual(statuses);
  });

  test("G3 are each given their own answer, in their order, where many come in one packet", async ({ gateway, onTestFinished }) => {
    const name = uniqueName();
    const warnings: Error[] = [];
    const note = (warning: Error) => void warnings.push(warning); // Of listeners that a connection gathers.
    process.on("warning", note);
    onTestFinished(() => void process.off("warning", note));
    await put(gateway.url, name, { token: 50, value: {} });
    const kinds = [
      { status: "200", bytes: (id: string) => `${head(name, { token: 50, more: id })}{}` },
      { status: "412", bytes: (id: string) => `${head(name, { token: 41, more: id })}{}` },
      { status: "404", bytes: (id: string) => `GET /v1/resources/${name}/none ${host}${id}\r\n` },
      { status: "428", bytes: (id: string) => `${withoutToken}Content-Length: 2\r\n${id}\r\n{}` },
    ];
    const sent = Array.from({ length: 30 }, () => kinds).flat();
    const connection = new RawConnection(gateway.url);
    connection.send(sent.map(({ bytes }, index) => bytes(`X-Request-Id: n${index}\r\n`)).join(""));
    await connection.receives(/X-Request-Id: n119\r\n/i);
    connection.socket.destroy();
    const answers = [...connection.received.matchAll(/HTTP\/1\.1 (\d+).*?X-Request-Id: (\w+)/gis)].map(([, status, id]) => [status, id]);
    expect(answers).toEqual(sent.map(({ status }, index) => [status, `n${index}`]));
    expect(warnings).toEqual([]);
  });
});

describe("requests in one packet", () => {
  const remove = (name: string) => `DELETE /v1/resources/${name} ${host}Fencing-Token: 5\r\n\r\n`;
  const read = (name: string) => `GET /v1/resources/${name} ${host}\r\n`;

  test("G1 that change something take effect in the order in which they were sent", async ({ gateway }) => {
    for (let times = 0; times < 20; times += 1) {
      const name = uniqueName();
      const connection = new RawConnection(gateway.url);
      connection.send(`${head(name)}{}${read(name)}${remove(name)}${head(name)}{}${remove(name)}`);
      await connection.receives(/(?:HTTP[\s\S]*){5}\r\n\r\n/);
      const [first, , ...others] = statusesOf(connection); // The GET may come before or after the PUT.
      expect([first, ...others]).toEqual(["201", "204", "201", "204"]);
      expect(await get(gateway.url, name)).toMatchObject({ status: 404 });
      connection.socket.destroy();
    }
  });

  test("G3 that wait for others are not begun once the connection is lost", async ({ startGateway, connect }) => {
    const gateway = await startGateway();
    const inFlight = async () =>
      Number((await (await fetch(`${gateway.adminUrl}/metrics`)).text()).match(/^palisade_requests_in_flight (\d+)/m)?.[1]);
    const [held, ...later] = [uniqueName(), uniqueName(), uniqueName()];
    for (const name of later) expect(await put(gateway.url, name, { token: 5, value: {} })).toMatchObject({ status: 201 });
    const holder = await holderOf(connect, held);
    const connection = new RawConnection(gateway.url);
    connection.send(`${head(held)}{}${later.map(remove).join("")}`);
    await eventually(inFlight).toBe(3);
    connection.socket.resetAndDestroy();
    await eventually(inFlight).toBe(1);
    await holder.query("commit");
    await eventually(inFlight).toBe(0);
    for (const name of later) expect(await get(gateway.url, name)).toMatchObject({ status: 200 });
  });
});

test("Expect: 100-continue is granted once the header is found to be good, and is the only expectation there is", async ({ gateway }) => {
  const connection = new RawConnection(gateway.url);
  connection.send(head(uniqueName(), { more: "Expect: 100-continue\r\n" }));
  await connection.receives(statusLine(100));
  connection.send("{}");
  await connection.receives(statusLine(201));
  connection.socket.destroy();
  // The connection ends, because the body may or may not follow.
  const refused = await exchanged(gateway.url, `PUT /v1/resources/x ${host}Content-Length: 2\r\nExpect: 100-continue\r\n\r\n`);
  expect(statusesOf(refused)).toEqual(["428"]);
  expect(statusesOf(await exchanged(gateway.url, head("x", { more: "Expect: a-miracle\r\n" })))).toEqual(["417"]);
});

describe("limits of the whole gateway", () => {
  test("bodies that together exceed the budget are refused as not applied, and then it is free again", async ({ startGateway }) => {
    const gateway = await startGateway({ bodyLimitBytes: 1_000, bodyBudgetBytes: 1_500 });
    const holding = new RawConnection(gateway.url);
    const name = uniqueName();
    holding.send(head(name, { length: 1_000, more: "Expect: 100-continue\r\n" }));
    await holding.receives(statusLine(100));
    holding.send(`"${"a".repeat(900)}`);
    const refused = async (): Promise<boolean> =>
      (await put(gateway.url, uniqueName(), { token: 1, value: "b".repeat(700) })).status === 503;
    await eventually(refused).toBe(true);
    holding.send(`${"a".repeat(98)}"`);
    await holding.receives(statusLine(201));
    expect(await put(gateway.url, uniqueName(), { token: 1, value: "b".repeat(700) })).toMatchObject({ status: 201 });
    holding.socket.destroy();
  });

  test("G6 slow bodies of one credential leave room for those of the others, and for small ones of its own", async ({ startGateway }) => {
    const [slow, worker] = [makeApiKey(), makeApiKey()];
    const apiKeys = [slow, worker].map(({ sha256 }, index) => ({ id: `key${index}`, sha256, scopes: ["write:"] }));
    const gateway = await startGateway({ apiKeys, bodyBudgetBytes: 3_000_000, bodyLookMs: 60_000 });
    const bearer = ({ key }: { readonly key: string }): string => `Authorization: Bearer ${key}\r\n`;
    const held = async () =>
      Number((await (await fetch(`${gateway.adminUrl}/metrics`)).text()).match(/^palisade_body_bytes_held (\d+)/m)?.[1]);
    const holding = Array.from({ length: 6 }, () => {
      const connection = new RawConnection(gateway.url);
      connection.send(`${head(uniqueName(), { length: 900_000, more: bearer(slow) })}"${"a".repeat(800_000)}`);
      return connection;
    });
    const refused = () => holding.filter(({ received }) => statusLine(503).test(received)).length;
    await eventually(refused).toBe(4);
    await eventually(held).toBe(1_600_002);
    const stored = async (by: typeof slow, length: number) => {
      const headers = ["Authorization", `Bearer ${by.key}`];
      return (await put(gateway.url, uniqueName(), { token: 1, value: "b".repeat(length), headers })).status;
    };
    expect([await stored(worker, 700_000), await stored(slow, 50_000), await stored(slow, 700_000)]).toEqual([201, 201, 503]);
    for (const { socket } of holding) socket.destroy();
  });

  test("more requests at once than allowed are refused as not applied", async ({ startGateway }) => {
    const gateway = await startGateway({ maxRequests: 1 });
    const holding = new RawConnection(gateway.url);
    holding.send(head(uniqueName(), { more: "Expect: 100-continue\r\n" }));
    await holding.receives(statusLine(100));
    const refused = await put(gateway.url, uniqueName(), { token: 1, value: {} });
    expect(refused).toMatchObject({ status: 503, json: { code: "unavailable", outcome: "not_applied" }, headers: { "retry-after": "1" } });
    holding.send("{}");
    await holding.receives(statusLine(201));
    holding.socket.destroy();
  });

  test("G6 requests that are refused for want of a credential take no capacity from one that has it", async ({ startGateway }) => {
    const worker = makeApiKey();
    const apiKeys = [{ id: "worker", sha256: worker.sha256, scopes: ["write:"] }];
    const gateway = await startGateway({ apiKeys, maxRequests: 10 });
    const connection = new RawConnection(gateway.url);
    const unknown = `GET /v1/resources/x ${host}\r\n`;
    connection.send(`${unknown.repeat(200)}${head(uniqueName(), { more: `Authorization: Bearer ${worker.key}\r\n` })}{}`);
    await connection.receives(/HTTP\/1\.1 (201|503) /);
    connection.socket.destroy();
    expect(statusesOf(connection)).toEqual([...Array.from({ length: 200 }, () => "401"), "201"]);
  });

  test("more connections than allowed are closed at once", async ({ startGateway }) => {
    const gateway = await startGateway({ maxConnections: 1 });
    const first = new RawConnection(gateway.url);
    first.send(head(uniqueName(), { more: "Expect: 100-continue\r\n" }));
    await first.receives(statusLine(100));
    const second = new RawConnection(gateway.url);
    await second.closed;
    expect(second.received).toBe("");
    first.socket.destroy();
  });

  test("G6 connections on which nothing is asked make room for a further one, and probes keep none", async ({ startGateway }) => {
    const gateway = await startGateway({ maxConnections: 3 });
    const quiet = Array.from({ length: 3 }, () => new RawConnection(gateway.url));
    for (const connection of quiet) {
      connection.send(`GET /nowhere ${host}\r\n`);
      await connection.receives(statusLine(404));
    }
    expect(await put(gateway.url, uniqueName(), { token: 1, value: {} })).toMatchObject({ status: 201 });
    await quiet[0]?.closed;
    expect(quiet.map(({ socket }) => socket.closed)).toEqual([true, false, false]);
    const probes = Array.from({ length: MAX_ADMIN_CONNECTIONS + 20 }, () => new RawConnection(gateway.adminUrl));
    expect(await (await fetch(`${gateway.adminUrl}/live`)).json()).toEqual({ live: true });
    for (const path of ["/live", "/ready", "/metrics"]) {
      const { received } = await exchanged(gateway.adminUrl, `GET ${path} ${host}\r\n`);
      expect(received).toMatch(/^HTTP\/1\.1 200 .*^Connection: close/ms);
    }
    for (const { socket } of [...quiet, ...probes]) socket.destroy();
  });

  test("a credential that sends too many requests is told when to retry", async ({ startGateway }) => {
    const gateway = await startGateway({ rateLimitPerSecond: 1 });
    const startedAt = performance.now();
    const answers = await Promise.all(Array.from({ length: 30 }, () => get(gateway.url, uniqueName())));
    const limited = answers.filter(({ status }) => status === 429);
    // One at once, and one more for each second that has passed.
    expect(answers.length - limited.length).toBeLessThanOrEqual(1 + (performance.now() - startedAt) / 1_000);
    expect(limited.length).toBeGreaterThan(0);
    expect(limited[0]).toMatchObject({ json: { code: "rate_limited" }, headers: { "retry-after": "1" } });
  });
});

test("the last answer of a connection does not end it before the client has sent its whole request", async ({ gateway }) => {
  const connection = new RawConnection(gateway.url);
  const errors: Error[] = [];
  connection.socket.on("error", (error) => errors.push(error));
  connection.send(`PUT /v1/resources/x ${host}Connection: close\r\nContent-Length: 3000000\r\n\r\n`);
  await connection.receives(statusLine(428));
  await get(gateway.url, uniqueName()); // The gateway had time to end it.
  expect(connection.socket.writable).toBe(true);
  connection.send(Buffer.alloc(3_000_000, 0x20));
  await connection.closed;
  expect(errors).toEqual([]);
});
