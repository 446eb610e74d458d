// Who may call, and whose tokens are trusted: keys and their scopes, JWTs with public keys, and the
// lock that is asked before a fence is raised.
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { makeApiKey } from "@palisade/gateway";
import { createLocker } from "@palisade/lock";
import express from "express";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { afterAll, beforeAll, createGateway, describe, eventually, expect, quiet, test, uniqueName } from "../support/fixtures.js";
import { type Answer, get, put, RawConnection, remove, seal, send } from "../support/wire.js";

const keys = { worker: makeApiKey(), reader: makeApiKey(), sealer: makeApiKey(), writer: makeApiKey(), admin: makeApiKey() };
const apiKeys = [
  { id: "worker", sha256: keys.worker.sha256, scopes: ["read:orders/", "write:orders/", "seal:orders/"] },
  { id: "reader", sha256: keys.reader.sha256, scopes: ["read:"] },
  { id: "sealer", sha256: keys.sealer.sha256, scopes: ["seal:"] },
  { id: "writer", sha256: keys.writer.sha256, scopes: ["write:"] },
  { id: "admin", sha256: keys.admin.sha256, scopes: ["admin:orders/", "read:orders/"] },
];
const as = (who: keyof typeof keys): readonly string[] => ["Authorization", `Bearer ${keys[who].key}`];
const forbidden = { status: 403, json: { code: "forbidden_scope" } };

describe("API keys", () => {
  test("let their holder do what their scopes say, where they say it", async ({ startGateway }) => {
    const { url } = await startGateway({ apiKeys });
    const [own, other] = [uniqueName("orders"), uniqueName("invoices")];
    const write = (name: string, who: keyof typeof keys) => put(url, name, { token: 5, value: { n: 1 }, headers: as(who) });
    expect(await write(own, "worker")).toMatchObject({ status: 201 });
    expect(await write(other, "worker")).toMatchObject(forbidden);
    for (const who of ["reader", "sealer", "admin"] as const) expect(await write(own, who)).toMatchObject(forbidden);
    expect(await get(url, own, ...as("reader"))).toMatchObject({ status: 200 });
    expect(await get(url, own, ...as("writer"))).toMatchObject(forbidden);
    expect(await get(url, other, ...as("worker"))).toMatchObject(forbidden);
    expect(await remove(url, own, { token: 5, headers: as("reader") })).toMatchObject(forbidden);
    expect(await send(url, { method: "GET", path: `/v1/fences/${own}`, headers: as("reader") })).toMatchObject({
      json: { holder: "worker" },
    });
  });

  test("that may only write learn nothing from an empty patch", async ({ startGateway }) => {
    const { url } = await startGateway({ apiKeys });
    const name = uniqueName("orders");
    await put(url, name, { token: 5, value: { secret: 1 }, headers: as("worker") });
    const patch = (who: keyof typeof keys) =>
      send(url, {
        method: "PATCH",
        path: `/v1/resources/${name}`,
        headers: ["Content-Type", "application/json", "Fencing-Token", "5", ...as(who)],
        body: "{}",
      });
    expect((await patch("writer")).text).not.toContain("secret");
    expect((await patch("worker")).json.value).toEqual({ secret: 1 });
  });

  test("are needed for every operation of a transaction, and for every name of a list", async ({ startGateway }) => {
    const { url } = await startGateway({ apiKeys });
    const body = JSON.stringify({
      operations: ["orders/t", "invoices/t"].map((resource) => ({ op: "put", resource, token: 5, value: 1 })),
    });
    const transact = (who: keyof typeof keys) =>
      send(url, { method: "POST", path: "/v1/transactions", headers: ["Content-Type", "application/json", ...as(who)], body });
    expect(await transact("worker")).toMatchObject({ ...forbidden, json: { operation: 1, resource: "invoices/t" } });
    expect(await transact("reader")).toMatchObject(forbidden);
    expect(await transact("writer")).toMatchObject({ status: 200 });
    const list = (who: keyof typeof keys, prefix: string) =>
      send(url, { method: "GET", path: `/v1/resources?prefix=${prefix}`, headers: as(who) });
    expect(await list("worker", "orders/")).toMatchObject({ status: 200 });
    expect(await list("worker", "orders/t")).toMatchObject({ status: 200 });
    for (const prefix of ["", "o", "invoices/", "orders"]) expect(await list("worker", prefix)).toMatchObject(forbidden);
  });

  test("with admin scope move fences, and their id is kept with the reason", async ({ startGateway }) => {
    const { url } = await startGateway({ apiKeys });
    const name = uniqueName("orders");
    const raise = (who: keyof typeof keys) =>
      send(url, {
        method: "POST",
        path: `/v1/fences/${name}`,
        headers: ["Content-Type", "application/json", ...as(who)],
        body: JSON.stringify({ action: "raise", token: 9, reason: "drill" }),
      });
    for (const who of ["worker", "reader", "sealer", "writer"] as const) expect(await raise(who)).toMatchObject(forbidden);
    expect(await raise("admin")).toMatchObject({ status: 200 });
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
  test.for([["Host: rebound.example"], ["Host: 127.0.0.1", "Host: rebound.example"]])(
    "a page that reaches this machine under another name is not served: %j",
    async (hosts, { gateway: { url } }) => {
      const connection = new RawConnection(url);
      connection.send(`GET /v1/resources HTTP/1.1\r\n${hosts.join("\r\n")}\r\nConnection: close\r\n\r\n`);
      await connection.closed;
      expect(connection.received).toMatch(/^HTTP\/1.1 403 /);
    },
  );

  test("a gateway that is mounted elsewhere opens only when told so, and then serves this machine alone", async ({
    database,
    onTestFinished,
  }) => {
    const gateway = createGateway({ ...quiet, databaseUrl: database.url });
    const mounted = createServer(gateway.app);
    onTestFinished(async () => {
      await new Promise((resolve) => mounted.close(resolve));
      await gateway.close();
    });
    await expect(gateway.open()).rejects.toThrow(/open\(\{ credentials: "none" \}\)/);
    await gateway.open({ credentials: "none" });
    let address = "127.0.0.1";
    mounted.on("connection", (socket) => Object.defineProperty(socket, "remoteAddress", { value: address }));
    await new Promise<void>((resolve) => mounted.listen(0, resolve));
    const url = `http://127.0.0.1:${(mounted.address() as AddressInfo).port}`;
    const lower = () =>
      send(url, {
        method: "POST",
        path: "/v1/fences/orders/1",
        headers: ["Content-Type", "application/json"],
        body: JSON.stringify({ action: "raise", token: 9, reason: "drill" }),
      });
    address = "203.0.113.9";
    expect(await lower()).toMatchObject(forbidden);
    address = "127.0.0.1";
    expect(await lower()).toMatchObject({ status: 200 });
  });
});

test("a body that somebody's express.json() has read already is answered with where to mount the gateway", async ({
  database,
  onTestFinished,
}) => {
  const gateway = createGateway({ ...quiet, databaseUrl: database.url });
  const outer = express().use(express.json()).use(gateway.app);
  const server = createServer(outer);
  onTestFinished(async () => {
    await new Promise((resolve) => server.close(resolve));
    await gateway.close();
  });
  await gateway.open({ credentials: "none" });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const put = (type: string) =>
    fetch(`${url}/v1/resources/mounted/1`, { method: "PUT", headers: { "Content-Type": type, "Fencing-Token": "5" }, body: '{"n":1}' });
  const read = await put("application/json");
  expect(read.status).toBe(500);
  expect(await read.json()).toMatchObject({
    code: "internal",
    outcome: "not_applied",
    detail: expect.stringMatching(/read before it reached the gateway.*mount gateway\.app before express\.json\(\)/),
  });
});

describe("JWTs", () => {
  let jwks: Server;
  let issue: (claims: Record<string, unknown>) => Promise<string>;
  let requests = 0;
  let published: "with k1" | "without k1" = "with k1";

  beforeAll(async () => {
    const [{ publicKey, privateKey }, other] = await Promise.all([generateKeyPair("ES256"), generateKeyPair("ES256")]);
    const key = { ...(await exportJWK(publicKey)), kid: "k1", alg: "ES256" };
    const otherKey = { ...(await exportJWK(other.publicKey)), kid: "k2", alg: "ES256" };
    jwks = createServer((_request, response) => {
      requests += 1;
      response.setHeader("Content-Type", "application/json").end(JSON.stringify({ keys: published === "with k1" ? [key] : [otherKey] }));
    });
    await new Promise<void>((resolve) => jwks.listen(0, "127.0.0.1", resolve));
    issue = (claims) =>
      new SignJWT({ sub: "billing", aud: "palisade", scope: "write:orders/", ...claims })
        .setProtectedHeader({ alg: "ES256", kid: "k1" })
        .setExpirationTime("1m")
        .sign(privateKey);
  });
  afterAll(() => new Promise((resolve) => jwks.close(resolve)));

  const jwtConfig = () => ({ jwtJwksUrl: `http://127.0.0.1:${(jwks.address() as AddressInfo).port}/jwks`, jwtAudience: "palisade" });
  const write = (url: string, token: string) =>
    put(url, uniqueName("orders"), { token: 5, value: {}, headers: ["Authorization", `Bearer ${token}`] });

  test("signed with a published key are believed, and the keys are fetched once", async ({ startGateway }) => {
    const { url } = await startGateway(jwtConfig());
    expect(await write(url, await issue({}))).toMatchObject({ status: 201 });
    expect(await write(url, await issue({}))).toMatchObject({ status: 201 });
    expect(requests).toBe(1);
    expect(await write(url, await issue({ aud: "other" }))).toMatchObject({ status: 401 });
    expect(await write(url, await issue({ scope: "read:orders/" }))).toMatchObject(forbidden);
    expect(await write(url, `${await issue({})}x`)).toMatchObject({ status: 401 });
  });

  test("G2 signed with the published key as if it were a shared secret are refused", async ({ startGateway }) => {
    const { url } = await startGateway(jwtConfig());
    const { keys } = (await (await fetch(jwtConfig().jwtJwksUrl)).json()) as { readonly keys: readonly { readonly x: string }[] };
    const forged = await new SignJWT({ sub: "billing", aud: "palisade", scope: "write:orders/" })
      .setProtectedHeader({ alg: "HS256", kid: "k1" })
      .setExpirationTime("1m")
      .sign(Buffer.from(keys[0]?.x ?? "", "base64url"));
    expect(await write(url, forged)).toMatchObject({ status: 401 });
  });

  test("of a key that is withdrawn are refused once the keys have reached their maximum age, or at once after a reload", async ({
    startGateway,
    onTestFinished,
  }) => {
    onTestFinished(() => {
      published = "with k1";
    });
    const patient = await startGateway(jwtConfig());
    const strict = await startGateway({ ...jwtConfig(), jwksMaxAgeMs: 1_000 });
    const token = await issue({});
    for (const { url } of [patient, strict, patient, strict]) expect(await write(url, token)).toMatchObject({ status: 201 });
    published = "without k1";
    await eventually(async () => (await write(strict.url, token)).status).toBe(401);
    expect(await write(patient.url, token)).toMatchObject({ status: 201 });
    await patient.reloadCredentials();
    expect(await write(patient.url, token)).toMatchObject({ status: 401 });
  });

  test("are neither believed nor refused while the keys cannot be fetched", async ({ startGateway }) => {
    const { url } = await startGateway({ ...jwtConfig(), jwtJwksUrl: "http://127.0.0.1:1/jwks" });
    expect(await write(url, await issue({}))).toMatchObject({ status: 503, json: { code: "unavailable", outcome: "not_applied" } });
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
    await eventually(async () => (await fetch(`${adminUrl}/ready`)).json()).toMatchObject({
      ready: true,
      checks: expect.arrayContaining([expect.objectContaining({ name: "lock", status: "ok" })]),
    });
  });

  test("G4 are taken on trust where verification is off, also while the operator's page shows the lock", async ({
    startGateway,
    redis,
  }) => {
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

  test("G4 are refused as not applied while the lock cannot be asked; holders whose token is the fence go on", async ({
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
