// Connections that are slow, broken, half closed or pipelined: every request gets its own answer,
// or none.
import { type Gateway, makeApiKey } from "@palisade/gateway";
import { describe, eventually, expect, test, uniqueName } from "../support/fixtures.js";
import { get, put, RawConnection, send } from "../support/wire.js";

interface Parts {
  readonly token?: number;
  readonly length?: number;
  readonly more?: string;
}

function head(name: string, { token = 5, length = 2, more = "" }: Parts = {}): string {
  return `PUT /v1/resources/${name} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nFencing-Token: ${token}\r\nContent-Length: ${length}\r\n${more}\r\n`;
}

const statusLine = (status: number): RegExp => new RegExp(`^HTTP/1\\.1 ${status} `, "m");

const statusesOf = ({ received }: RawConnection) => [...received.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status);

async function expectNothingStored(gateway: Gateway, name: string): Promise<void> {
  expect(await get(gateway.url, name)).toMatchObject({ status: 404 });
}

describe("a slow client", () => {
  const impatient = { requestTimeoutMs: 200, headersTimeoutMs: 200 } as const;

  test("whose header does not arrive in time is told so and disconnected", async ({ startGateway }) => {
    const gateway = await startGateway(impatient);
    const connection = new RawConnection(gateway.url);
    connection.send("PUT /v1/resources/x HTTP/1.1\r\nHost: localh");
    await connection.closed;
    expect(connection.received).toMatch(statusLine(408));
    expect(connection.received).toContain('"code":"request_timeout"');
  });

  test("G6 of the admin port has no more time for its header", async ({ startGateway }) => {
    const gateway = await startGateway(impatient);
    const connection = new RawConnection(gateway.adminUrl);
    connection.send("GET /ready HTTP/1.1\r\nHost: localh");
    await connection.closed;
    expect(connection.received).toMatch(statusLine(408));
  });

  test("that was refused and never sends the rest is disconnected in time, after one answer", async ({ startGateway }) => {
    const gateway = await startGateway(impatient);
    const refused = async (): Promise<RawConnection> => {
      const connection = new RawConnection(gateway.url);
      connection.send("PUT /v1/resources/x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 100\r\n\r\n");
      await connection.closed;
      return connection.received.startsWith("HTTP/1.1 408 ") ? refused() : connection; // On a busy machine the header itself may be late.
    };
    const connection = await refused();
    expect(connection.received).toMatch(statusLine(428));
    expect(connection.received.match(/HTTP\/1\.1 /g)).toHaveLength(1);
  });

  test("whose body does not arrive in time is told so, and nothing is stored", async ({ startGateway, gateway: patient }) => {
    const gateway = await startGateway(impatient);
    const name = uniqueName();
    const connection = new RawConnection(gateway.url);
    connection.send(`${head(name, { length: 100 })}{"a":`);
    await connection.closed;
    expect(connection.received).toMatch(statusLine(408));
    await expectNothingStored(patient, name);
  });

  test("that says nothing at all is disconnected", async ({ startGateway }) => {
    const gateway = await startGateway({ ...impatient, idleTimeoutMs: 200 });
    const connection = new RawConnection(gateway.url);
    await connection.closed;
    expect(connection.received).toMatch(/^$|408/);
  });

  test("does not hold up the others", async ({ startGateway }) => {
    const gateway = await startGateway();
    const slow = Array.from({ length: 50 }, () => new RawConnection(gateway.url));
    for (const connection of slow) connection.send(`${head(uniqueName(), { length: 100 })}{`);
    expect(await put(gateway.url, uniqueName(), { token: 1, value: {} })).toMatchObject({ status: 201 });
    for (const connection of slow) connection.socket.destroy();
  });
});

describe("a broken request", () => {
  test("that ends in the middle of its body stores nothing", async ({ gateway }) => {
    const name = uniqueName();
    const connection = new RawConnection(gateway.url);
    connection.send(`${head(name, { length: 100 })}{}`);
    connection.finish();
    await connection.closed;
    expect(connection.received).toMatch(statusLine(400));
    await expectNothingStored(gateway, name);
  });

  test("whose connection is reset in the middle of its body stores nothing", async ({ gateway }) => {
    const name = uniqueName();
    const connection = new RawConnection(gateway.url);
    connection.send(`${head(name, { length: 100, more: "Expect: 100-continue\r\n" })}`);
    await connection.receives(statusLine(100));
    connection.send("{}");
    connection.socket.resetAndDestroy();
    await connection.closed;
    await expectNothingStored(gateway, name);
  });

  test.for([
    ["garbage", "\u0000\u0001\u0002\r\n\r\n", 400, "request_malformed"],
    ["TLS", "\u0016\u0003\u0001\u0002\u0000\u0001", 400, "request_malformed"],
    [
      "two lengths",
      "PUT /v1/resources/x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
      400,
      "request_malformed",
    ],
    [
      "length and chunks",
      "PUT /v1/resources/x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      400,
      "request_malformed",
    ],
    [
      "a broken chunk",
      "PUT /v1/resources/x HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nFencing-Token: 5\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
      400,
      "request_malformed",
    ],
    ["a header of 40 kB", `GET /v1/resources/x HTTP/1.1\r\nHost: a\r\nX-A: ${"a".repeat(40_000)}\r\n\r\n`, 431, "headers_too_many"],
    ["a header that is no header", "GET /v1/resources/x HTTP/1.1\r\nHost: a\r\nFencing Token: 5\r\n\r\n", 400, "request_malformed"],
    ["CONNECT", "CONNECT example.org:443 HTTP/1.1\r\nHost: a\r\n\r\n", 405, "method_not_allowed"],
  ] as const)("that is %s is refused as bytes", async ([, bytes, status, code], { gateway }) => {
    const connection = new RawConnection(gateway.url);
    connection.send(Buffer.from(bytes, "latin1"));
    await connection.closed;
    expect(connection.received).toMatch(statusLine(status));
    expect(connection.received).toContain(`"code":"${code}"`);
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

describe("a client that closes its half", () => {
  test("after a whole request still gets the answer", async ({ gateway }) => {
    const connection = new RawConnection(gateway.url);
    connection.send(`${head(uniqueName())}{}`);
    connection.finish();
    await connection.closed;
    expect(connection.received).toMatch(statusLine(201));
  });
});

describe("requests in a row on one connection", () => {
  test("are answered in their order", async ({ gateway }) => {
    const name = uniqueName();
    const connection = new RawConnection(gateway.url);
    connection.send(
      `${head(name, { token: 1 })}{}${head(name, { token: 0 })}{}GET /v1/resources/${name} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`,
    );
    await connection.closed;
    expect(statusesOf(connection)).toEqual(["201", "400", expect.stringMatching(/200|404/)]);
  });

  test("G3 a write that is followed by garbage is never answered by the refusal of the garbage", async ({ gateway }) => {
    for (let round = 0; round < 20; round++) {
      const name = uniqueName();
      const connection = new RawConnection(gateway.url);
      connection.send(`${head(name)}{}\u0000garbage\r\n\r\n`);
      await connection.closed;
      const [, first] = /^HTTP\/1\.1 (\d+)/.exec(connection.received) ?? [];
      if (first !== undefined) expect([first, (await get(gateway.url, name)).status]).toEqual(["201", 200]);
    }
  });

  const withoutToken = "PUT /v1/resources/x HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
  const nowhere = "GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n";
  test.for([
    ["of a write without a token", `${withoutToken}Content-Length: 2\r\n\r\n{}`, ["428", "405"]],
    ["of a write without a token whose body is garbage", `${withoutToken}Transfer-Encoding: chunked\r\n\r\n`, ["428"]],
    ["of two paths that are not there", nowhere.repeat(2), ["404", "404", "405"]],
  ] as const)("G3 the refusal %s is not lost when garbage follows in the same packet", async ([, refused, statuses], { gateway }) => {
    const connection = new RawConnection(gateway.url);
    connection.send(`${refused}\u0000garbage\r\n\r\n`);
    await connection.closed;
    expect(statusesOf(connection)).toEqual(statuses);
  });

  test("G3 are each given their own answer, in their order, where accepted, stale and unknown ones come in one packet", async ({
    gateway,
  }) => {
    const name = uniqueName();
    await put(gateway.url, name, { token: 50, value: {} });
    const kinds = [
      { status: "200", bytes: (id: string) => `${head(name, { token: 50, more: id })}{}` },
      { status: "412", bytes: (id: string) => `${head(name, { token: 41, more: id })}{}` },
      { status: "404", bytes: (id: string) => `GET /v1/resources/${name}/none HTTP/1.1\r\nHost: localhost\r\n${id}\r\n` },
      { status: "428", bytes: (id: string) => `${withoutToken}Content-Length: 2\r\n${id}\r\n{}` },
    ];
    const sent = Array.from({ length: 30 }, () => kinds).flat();
    const connection = new RawConnection(gateway.url);
    connection.send(sent.map(({ bytes }, index) => bytes(`X-Request-Id: n${index}\r\n`)).join(""));
    await connection.receives(/X-Request-Id: n119\r\n/i);
    connection.socket.destroy();
    const answers = [...connection.received.matchAll(/HTTP\/1\.1 (\d+).*?X-Request-Id: (\w+)/gis)].map(([, status, id]) => [status, id]);
    expect(answers).toEqual(sent.map(({ status }, index) => [status, `n${index}`]));
  });
});

test("a connection that is kept gathers no listeners, whatever its requests are answered", async ({ gateway }) => {
  const warnings: Error[] = [];
  const note = (warning: Error) => void warnings.push(warning);
  process.on("warning", note);
  const connection = new RawConnection(gateway.url);
  const name = uniqueName();
  const paths = [name, `${name}/none`, "%zz"];
  for (let at = 0; at < 40; at++) {
    const id = `X-Request-Id: n${at}.\r\n`;
    const path = paths[at % paths.length];
    connection.send(at % 2 === 0 ? `${head(path ?? "", { more: id })}{}` : `GET /v1/resources/${path} HTTP/1.1\r\nHost: a\r\n${id}\r\n`);
    await connection.receives(new RegExp(`n${at}\\.\r\n(?:.+\r\n)*\r\n`, "i"));
  }
  connection.socket.destroy();
  process.off("warning", note);
  expect(statusesOf(connection)).toHaveLength(40);
  expect(warnings).toEqual([]);
});

describe("Expect: 100-continue", () => {
  test("is granted only once the header is found to be good", async ({ gateway }) => {
    const name = uniqueName();
    const connection = new RawConnection(gateway.url);
    connection.send(head(name, { more: "Expect: 100-continue\r\n" }));
    await connection.receives(statusLine(100));
    connection.send("{}");
    await connection.receives(statusLine(201));
    connection.socket.destroy();
  });

  test("is not granted to a request without a token, and the connection ends, because the body may or may not follow", async ({
    gateway,
  }) => {
    const connection = new RawConnection(gateway.url);
    connection.send(`PUT /v1/resources/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n`);
    await connection.closed;
    expect(connection.received).toMatch(statusLine(428));
    expect(connection.received).not.toMatch(statusLine(100));
  });

  test("is the only expectation there is", async ({ gateway }) => {
    const connection = new RawConnection(gateway.url);
    connection.send(head("x", { more: "Expect: a-miracle\r\n" }));
    await connection.closed;
    expect(connection.received).toMatch(statusLine(417));
  });
});

describe("limits of the whole gateway", () => {
  test("bodies that together exceed the budget are refused as not applied, and the budget is free again afterwards", async ({
    startGateway,
  }) => {
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
    const unknown = "GET /v1/resources/x HTTP/1.1\r\nHost: localhost\r\n\r\n";
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
  connection.send(`PUT /v1/resources/x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 3000000\r\n\r\n`);
  await connection.receives(statusLine(428));
  await get(gateway.url, uniqueName()); // The gateway had time to end it.
  expect(connection.socket.writable).toBe(true);
  connection.send(Buffer.alloc(3_000_000, 0x20));
  await connection.closed;
  expect(errors).toEqual([]);
});

test("a large body that is refused does not cost the client the answer", async ({ gateway }) => {
  const body = Buffer.alloc(3_000_000, 0x20);
  const headers = ["Content-Type", "application/json"];
  for (let round = 0; round < 5; round++) {
    expect(await send(gateway.url, { method: "PUT", path: "/v1/resources/x", headers, body })).toMatchObject({ status: 428 });
    expect(await put(gateway.url, "x", { token: 1, value: body.toString() })).toMatchObject({ status: 413 });
  }
});
