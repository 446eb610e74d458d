// Who may call, and whose tokens are trusted: keys and their scopes, JWTs with public keys, and the
// lock that is asked before a fence is raised.
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type Gateway, makeApiKey } from "@palisade/gateway";
import { createLocker } from "@palisade/lock";
import express from "express";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { afterAll, test as base, beforeAll, createGateway, describe, eventually, expect, quiet, uniqueName } from "../support/fixtures.js";
import { type Answer, get, put, RawConnection, remove, seal, send } from "../support/wire.js";

interface Mounted {
  readonly url: string;
  readonly server: Server;
}

/** In a server that is not the gateway's, without credentials. */
const test = base.extend("mount", ({ task: _test }, { onCleanup }) => {
  return async (gateway: Gateway, app: RequestListener): Promise<Mounted> => {
    const server = createServer(app);
    onCleanup(async () => {
      await new Promise((resolve) => server.close(resolve));
      await gateway.close();
    });
    await gateway.open();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server };
  };
});

const scopes = {
  worker: ["read:orders/", "write:orders/", "seal:orders/"],
  reader: ["read:"],
  sealer: ["seal:"],
  writer: ["write:"],
  admin: ["admin:orders/", "read:orders/"],
} as const;
type Who = keyof typeof scopes;
const everybody = Object.keys(scopes) as readonly Who[];
const keys = Object.fromEntries(everybody.map((who) => [who, makeApiKey()])) as Record<Who, ReturnType<typeof makeApiKey>>;
const apiKeys = everybody.map((id) => ({ id, sha256: keys[id].sha256, scopes: scopes[id] }));
const as = (who: Who): readonly string[] => ["Authorization", `Bearer ${keys[who].key}`];
const json = ["Content-Type", "application/json"];
const forbidden = { status: 403, json: { code: "forbidden_scope" } };

describe("API keys", () => {
  test("let their holder do what their scopes say, where they say it, and nothing else", async ({ startGateway }) => {
    const { url } = await startGateway({ apiKeys });
    const [order, invoice] = [uniqueName("orders"), uniqueName("invoices")];
    const operations = [order, invoice].map((resource) => ({ op: "put", resource, token: 5, value: 1 }));
    const post = (path: string, body: unknown, headers: readonly string[]) =>
      send(url, { method: "POST", path, headers: [...json, ...headers], body: JSON.stringify(body) });
    const list = (prefix: string) => (headers: readonly string[]) =>
      send(url, { method: "GET", path: `/v1/resources?prefix=${prefix}`, headers });
    type Ask = (headers: readonly string[]) => Promise<Answer>;
    const table: readonly (readonly [what: string, ask: Ask, ...allowed: Who[]])[] = [
      ["write", (headers) => put(url, order, { token: 5, value: {}, headers }), "worker", "writer"],
      ["write elsewhere", (headers) => put(url, invoice, { token: 5, value: {}, headers }), "writer"],
      ["read", (headers) => get(url, order, ...headers), "worker", "reader", "admin"],
      ["read elsewhere", (headers) => get(url, invoice, ...headers), "reader"],
      ["read a fence", (headers) => send(url, { method: "GET", path: `/v1/fences/${order}`, headers }), "worker", "reader", "admin"],
      ["list", list("orders/"), "worker", "reader", "admin"],
      ["list part of it", list("orders/t"), "worker", "reader", "admin"],
      ...["", "o", "invoices/", "orders"].map((prefix) => [`list ${prefix}`, list(prefix), "reader"] as const),
      [
        "seal",
        (headers) => send(url, { method: "POST", path: `/v1/resources/${order}/seal`, headers: ["Fencing-Token", "5", ...headers] }),
        "worker",
        "sealer",
      ],
      ["transact", (headers) => post("/v1/transactions", { operations }, headers), "writer"],
      ["move a fence", (headers) => post(`/v1/fences/${order}`, { action: "raise", token: 9, reason: "drill" }, headers), "admin"],
      ["delete", (headers) => remove(url, order, { token: 9, headers }), "worker", "writer"],
    ];
    for (const [what, ask, ...allowed] of table)
      for (const who of everybody) {
        const answer = await ask(as(who));
        if (!allowed.includes(who)) expect([what, who, answer]).toMatchObject([what, who, forbidden]);
        else expect([what, who, answer.status]).toEqual([what, who, expect.toBeOneOf([200, 201, 204, 404])]);
      }
    expect(await post("/v1/transactions", { operations }, as("worker"))).toMatchObject({ json: { operation: 1, resource: invoice } });
    expect(await send(url, { method: "GET", path: `/v1/fences/${order}`, headers: as("reader") })).toMatchObject({
      json: { holder: "worker" },
    });
  });

  test("that may only write learn nothing from an empty patch", async ({ startGateway }) => {
    const { url } = await startGateway({ apiKeys });
    const name = uniqueName("orders");
    await put(url, name, { token: 5, value: { secret: 1 }, headers: as("worker") });
    const patch = (who: Who) =>
      send(url, { method: "PATCH", path: `/v1/resources/${name}`, headers: [...json, "Fencing-Token", "5", ...as(who)], body: "{}" });
    expect((await patch("writer")).text).not.toContain("secret");
    expect((await patch("worker")).json.value).toEqual({ secret: 1 });
  });

  test("are checked before the body is read, and before anything else is said", async ({ startGateway }) => {
    const { url } = await startGateway({ apiKeys });
    for (const headers of [
      [],
      ["Authorization", "Bearer nobody-knows-this-key-here"],
      ["Authorization", "Basic YTpi"],
      [...as("worker"), ...as("worker")],
    ]) {
      const answer = await send(url, { method: "PUT", path: "/v1/resources/..", headers, body: Buffer.alloc(2_000_000, 0x20) });
      expect(answer).toMatchObject({
        status: 401,
        json: { code: "unauthenticated" },
        headers: { "www-authenticate": 'Bearer realm="palisade"' },
      });
    }
  });
});

describe("without keys", () => {
  test.for([
    [403, ["Host: rebound.example"]],
    [400, ["Host: 127.0.0.1", "Host: rebound.example"]],
  ] as const)("a page that reaches this machine under another name is not served: %i %j", async ([status, hosts], { gateway: { url } }) => {
    const connection = new RawConnection(url);
    connection.send(`GET /v1/resources HTTP/1.1\r\n${hosts.join("\r\n")}\r\nConnection: close\r\n\r\n`);
    await connection.closed;
    expect(connection.received).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  });

  test("a gateway that is mounted elsewhere serves this machine alone", async ({ database, mount }) => {
    const gateway = createGateway({ ...quiet, databaseUrl: database.url });
    const { url, server } = await mount(gateway, gateway.app);
    let address = "127.0.0.1";
    server.on("connection", (socket) => Object.defineProperty(socket, "remoteAddress", { value: address }));
    address = "203.0.113.9";
    expect(await put(url, uniqueName(), { token: 5, value: {} })).toMatchObject(forbidden);
    address = "127.0.0.1";
    expect(await put(url, uniqueName(), { token: 5, value: {} })).toMatchObject({ status: 201 });
  });
});

test("a body that somebody's express.json() has read already is answered with where to mount the gateway", async ({ database, mount }) => {
  const gateway = createGateway({ ...quiet, databaseUrl: database.url });
  const { url } = await mount(gateway, express().use(express.json()).use(gateway.app));
  expect(await put(url, "mounted/1", { token: 5, value: { n: 1 } })).toMatchObject({
    status: 500,
    json: {
      code: "internal",
      outcome: "not_applied",
      detail: expect.stringMatching(/read before it reached the gateway.*mount gateway\.app before express\.json\(\)/),
    },
  });
});

describe("JWTs", () => {
  let jwks: Server;
  let requests = 0;
  let published: "k1" | "k2" = "k1";
  /** Signed by k1. */
  let issue: (claims?: Record<string, unknown>) => Promise<string>;
  const claimsOf = (claims: Record<string, unknown> = {}) =>
    new SignJWT({ sub: "billing", aud: "palisade", scope: "write:orders/", ...claims }).setExpirationTime("1m");

  beforeAll(async () => {
    const pairs = await Promise.all([generateKeyPair("ES256"), generateKeyPair("ES256")]);
    const [k1, k2] = await Promise.all(
      pairs.map(async ({ publicKey }, at) => ({ ...(await exportJWK(publicKey)), kid: `k${at + 1}`, alg: "ES256" })),
    );
    jwks = createServer((_request, response) => {
      requests += 1;
      response.setHeader("Content-Type", "application/json").end(JSON.stringify({ keys: [published === "k1" ? k1 : k2] }));
    });
    await new Promise<void>((resolve) => jwks.listen(0, "127.0.0.1", resolve));
    issue = (claims) => claimsOf(claims).setProtectedHeader({ alg: "ES256", kid: "k1" }).sign(pairs[0].privateKey);
  });
  afterAll(() => new Promise((resolve) => jwks.close(resolve)));

  const jwtConfig = () => ({ jwtJwksUrl: `http://127.0.0.1:${(jwks.address() as AddressInfo).port}/jwks`, jwtAudience: "palisade" });
  const write = (url: string, token: string) =>
    put(url, uniqueName("orders"), { token: 5, value: {}, headers: ["Authorization", `Bearer ${token}`] });

  test("G2 signed with a published key are believed, the keys are fetched once, and no signature is made with what was published", async ({
    startGateway,
  }) => {
    const { url } = await startGateway(jwtConfig());
    for (const claims of [{}, { sub: "other" }]) expect(await write(url, await issue(claims))).toMatchObject({ status: 201 });
    expect(requests).toBe(1);
    const { keys: shown } = (await (await fetch(jwtConfig().jwtJwksUrl)).json()) as { readonly keys: readonly { readonly x: string }[] };
    const secret = Buffer.from(shown[0]?.x ?? "", "base64url");
    const forged = await claimsOf().setProtectedHeader({ alg: "HS256", kid: "k1" }).sign(secret);
    for (const refused of [forged, `${await issue()}x`, await issue({ aud: "other" })])
      expect(await write(url, refused)).toMatchObject({ status: 401 });
    expect(await write(url, await issue({ scope: "read:orders/" }))).toMatchObject(forbidden);
  });

  test("of a withdrawn key are refused once the keys have reached their maximum age, or after a reload", async ({
    startGateway,
    onTestFinished,
  }) => {
    onTestFinished(() => {
      published = "k1";
    });
    const patient = await startGateway(jwtConfig());
    const strict = await startGateway({ ...jwtConfig(), jwksMaxAgeMs: 1_000 });
    const token = await issue();
    for (const { url } of [patient, strict, patient, strict]) expect(await write(url, token)).toMatchObject({ status: 201 });
    published = "k2";
    await eventually(async () => (await write(strict.url, token)).status).toBe(401);
    expect(await write(patient.url, token)).toMatchObject({ status: 201 });
    await patient.reloadCredentials();
    expect(await write(patient.url, token)).toMatchObject({ status: 401 });
  });

  test("are neither believed nor refused while the keys cannot be fetched", async ({ startGateway }) => {
    const { url } = await startGateway({ ...jwtConfig(), jwtJwksUrl: "http://127.0.0.1:1/jwks" });
    expect(await write(url, await issue())).toMatchObject({ status: 503, json: { code: "unavailable", outcome: "not_applied" } });
  });
});

/**
 * The gateway gives the lock a second to answer. Where that is too short it says so and has done
 * nothing; a retry gets the answer.
 */
async function decided(ask: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    const answer = await ask();
    if (answer.json?.code !== "verification_unavailable") return answer;
  }
}

describe("tokens that would raise a fence", () => {
  test("G4 are accepted when the lock issued them, and refused as forged when it did not", async ({ startGateway, redis }) => {
    const { urls, namespace } = redis;
    const { url, adminUrl } = await startGateway({ redisUrls: [...urls], namespace });
    await using locker = createLocker({ nodes: urls, namespace });
    const name = uniqueName();
    await using lease = await locker.acquire(name);
    expect(await decided(() => put(url, name, { token: lease.token, value: {} }))).toMatchObject({ status: 201 });
    const forged = await decided(() => put(url, name, { token: lease.token + 1_000_000, value: {} }));
    expect(forged).toMatchObject({
      status: 403,
      json: { code: "fencing_token_unissued", resource: name, presentedToken: lease.token + 1_000_000 },
    });
    expect(await decided(() => seal(url, name, 999_999_999_999_999))).toMatchObject({
      status: 403,
      json: { code: "fencing_token_unissued" },
    });
    expect(await put(url, name, { token: lease.token, value: {} })).toMatchObject({ status: 200 });
    expect(await (await fetch(`${adminUrl}/metrics`)).text()).toContain('palisade_verifications_total{answer="unissued"} 2');
    await eventually(async () => (await fetch(`${adminUrl}/ready`)).json()).toMatchObject({
      ready: true,
      checks: expect.arrayContaining([expect.objectContaining({ name: "lock", status: "ok" })]),
    });
  });

  test("G4 are taken on trust where verification is off, also with the operator's page on", async ({ startGateway, redis }) => {
    const { urls, namespace } = redis;
    const { url, adminUrl } = await startGateway({ redisUrls: [...urls], namespace, verify: "off", page: "on" });
    await using locker = createLocker({ nodes: urls, namespace });
    const name = uniqueName();
    await using lease = await locker.acquire(name);
    expect(await decided(() => put(url, name, { token: lease.token + 1_000_000, value: {} }))).toMatchObject({ status: 201 });
    const shown = await fetch(`${adminUrl}/page/resource?${new URLSearchParams({ name })}`);
    expect(await shown.json()).toMatchObject({ lock: { state: "held", token: lease.token }, fence: { token: lease.token + 1_000_000 } });
    const { checks } = (await (await fetch(`${adminUrl}/ready`)).json()) as { checks: readonly { name: string }[] };
    expect(checks.map((check) => check.name)).not.toContain("lock");
  });

  test("G4 are refused as not applied while the lock is away; holders whose token is the fence go on", async ({
    startGateway,
    fleet,
    redis: _redis,
  }) => {
    const { nodes, urls } = await fleet({ nodes: 3 });
    const closed = await startGateway({ redisUrls: [...urls] });
    const open = await startGateway({ redisUrls: [...urls], verify: "open" });
    await using locker = createLocker({ nodes: urls });
    const name = uniqueName();
    const lease = await locker.acquire(name);
    expect(await decided(() => put(closed.url, name, { token: lease.token, value: {} }))).toMatchObject({ status: 201 });
    await Promise.all(nodes.map((node) => node.kill()));
    const refused = await put(closed.url, name, { token: lease.token + 1, value: {} });
    expect(refused).toMatchObject({
      status: 503,
      json: { code: "verification_unavailable", outcome: "not_applied" },
      headers: { "retry-after": "1" },
    });
    expect(await put(closed.url, name, { token: lease.token, value: {} })).toMatchObject({ status: 200 });
    expect(await put(open.url, name, { token: lease.token + 1, value: {} })).toMatchObject({ status: 200 });
    const ready = await fetch(`${closed.adminUrl}/ready`);
    expect([ready.status, await ready.json()]).toEqual([
      200,
      expect.objectContaining({ checks: expect.arrayContaining([expect.objectContaining({ name: "lock", status: "warning" })]) }),
    ]);
  });
});
