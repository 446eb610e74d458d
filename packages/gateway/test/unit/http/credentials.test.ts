// API keys, scopes, JWTs and the rate limit.
import { SignJWT } from "jose";
import { describe, expect, test } from "vitest";
import { hashApiKey, makeApiKey } from "../../../src/http/api-keys.js";
import { ApiKeyring, credentialAuthenticator, JwtVerifier, openAuthenticator } from "../../../src/http/auth.js";
import { RateLimit } from "../../../src/http/dispatcher.js";
import { parseScope } from "../../../src/http/names.js";

const { key, sha256 } = makeApiKey();
const keyring = new ApiKeyring({ keys: [{ id: "worker", sha256, scopes: ["write:orders/", "read:"] }] });
const keysOnly = credentialAuthenticator({ keyring, jwt: undefined });
/** With credentials the origin of a request does not count. */
const elsewhere = { headers: { host: "evil.example", forwarded: true }, socket: { remoteAddress: "203.0.113.9" } };
const unauthenticated = expect.objectContaining({ code: "unauthenticated", status: 401 });

describe("an API key", () => {
  const entry = { id: "a", sha256, scopes: ["read:"] };
  const inAnHour = new Date(Date.now() + 3_600_000).toISOString();
  const anHourAgo = new Date(Date.now() - 3_600_000).toISOString();

  test("has 256 random bits, is found by its hash and known by its id", () => {
    expect(Buffer.from(key.slice("palisade_".length), "base64url")).toHaveLength(32);
    expect(makeApiKey().key).not.toBe(key);
    for (const field of [`Bearer ${key}`, `bearer  ${key}`])
      expect(keysOnly.authenticate(field, elsewhere)).toMatchObject({ id: "worker" });
  });

  test("that is missing, wrong, doubled or of another scheme is not let in, and is not repeated in the answer", () => {
    const changed = `${key.slice(0, -1)}${key.endsWith("A") ? "B" : "A"}`;
    const bearers = ["", " ", ` ${changed}`, ` ${key} x`, ` ${key}\nBearer ${key}`, ` ${sha256}`].map((rest) => `Bearer${rest}`);
    for (const field of [undefined, "", key, `Basic ${key}`, ...bearers]) {
      const answer = keysOnly.authenticate(field, elsewhere);
      expect([field, answer]).toEqual([field, unauthenticated]);
      expect(JSON.stringify(answer)).not.toContain(key.slice(10));
    }
  });

  test("cannot be listed twice, and one too short to hold 128 bits is refused, even if its hash is stored", () => {
    const short = "x".repeat(21);
    expect(new ApiKeyring({ keys: [{ ...entry, sha256: hashApiKey(short) }] }).find(short)).toBeUndefined();
    for (const twin of [{ id: "b" }, { sha256: "0".repeat(64) }])
      expect(() => new ApiKeyring({ keys: [entry, { ...entry, ...twin }] })).toThrow(RangeError);
  });

  test("that expires is good until then, and counted as expired after; one that follows another is the same caller", () => {
    const good = new ApiKeyring({ keys: [{ ...entry, expiresAt: inAnHour }] });
    expect(good.find(key)).toMatchObject({ id: "a" });
    expect([good.expiredAt(Date.now()), good.expiredAt(Date.now() + 7_200_000)]).toEqual([0, 1]);
    expect(new ApiKeyring({ keys: [{ ...entry, expiresAt: anHourAgo }] }).find(key)).toBeUndefined();
    const old = makeApiKey();
    const withPrevious = (expiresAt: string) => new ApiKeyring({ keys: [{ ...entry, previous: { sha256: old.sha256, expiresAt } }] });
    expect(withPrevious(inAnHour).find(old.key)).toEqual(withPrevious(inAnHour).find(key));
    expect(withPrevious(anHourAgo).find(old.key)).toBeUndefined();
    expect(() => new ApiKeyring({ keys: [{ ...entry, previous: { sha256, expiresAt: inAnHour } }] })).toThrow(RangeError);
  });
});

test("a scope is an action, a colon and a prefix", () => {
  expect(parseScope("write:a:b")).toEqual({ action: "write", prefix: "a:b" });
  for (const text of ["", "read", "READ:", "delete:", ":", "read:\u0000", `read:${"x".repeat(513)}`])
    expect([text, parseScope(text)]).toEqual([text, undefined]);
});

describe("a JWT", () => {
  const secret = "0123456789abcdef0123456789abcdef";
  const jwt = new JwtVerifier({ secret, audience: "palisade", issuer: "https://issuer.example" });
  const both = credentialAuthenticator({ keyring, jwt });
  const sign = (claims: Record<string, unknown>, using = secret, alg = "HS256") =>
    new SignJWT({
      iss: "https://issuer.example",
      aud: "palisade",
      sub: "billing",
      exp: Math.floor(Date.now() / 1_000) + 60,
      scope: "write:orders/ openid",
      ...claims,
    })
      .setProtectedHeader({ alg })
      .sign(new TextEncoder().encode(using));
  const ask = async (token: string) => both.authenticate(`Bearer ${token}`, elsewhere);

  test("speaks for its subject with the scopes it names, again and again, where any is configured", async () => {
    const token = await sign({});
    for (const _again of [1, 2]) expect(await ask(token)).toEqual({ id: "jwt:billing", scopes: [{ action: "write", prefix: "orders/" }] });
    expect(keysOnly.authenticate(`Bearer ${token}`, elsewhere)).toEqual(unauthenticated);
  });

  test("is refused when expired, for another audience, by another issuer, without expiry, without scope or without signature", async () => {
    const past = Math.floor(Date.now() / 1_000) - 60;
    const unsigned = `${Buffer.from('{"alg":"none"}').toString("base64url")}.${Buffer.from('{"aud":"palisade","sub":"x","scope":"write:"}').toString("base64url")}.x`;
    const claims = [{ exp: past }, { exp: undefined }, { aud: "other" }, { iss: "https://other.example" }, { sub: undefined }];
    const scopes = [undefined, "openid", "write:%zz"].map((scope) => ({ scope }));
    const tokens = [...[...claims, ...scopes].map((each) => sign(each)), sign({}, "f".repeat(32)), unsigned];
    for (const token of await Promise.all(tokens)) expect(await ask(token)).toEqual(unauthenticated);
  });

  test("grants nothing by scopes of other services, only by whole folders of names", async () => {
    const scopesOf = async (scope: string) => (await ask(await sign({ scope }))) as { scopes?: unknown };
    for (const foreign of ["write:org", "read:user", "admin:repo_hook", "write:packages read:project", "write:orders"])
      expect([foreign, await scopesOf(foreign)]).toEqual([foreign, unauthenticated]);
    expect(await scopesOf("write:org write:orders%2F read:")).toMatchObject({
      scopes: [
        { action: "write", prefix: "orders/" },
        { action: "read", prefix: "" },
      ],
    });
  });
});

describe("without credentials", () => {
  const from = (remoteAddress: string | undefined, host?: string, forwarded = false) =>
    openAuthenticator.authenticate(undefined, { headers: { host, forwarded }, socket: { remoteAddress } });

  test("only callers on this machine that name it as host are answered, and none that a proxy passed on", () => {
    for (const address of ["127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1"])
      expect([address, from(address, "localhost:8080")]).toEqual([address, expect.objectContaining({ id: "anonymous" })]);
    for (const address of [undefined, "", "10.0.0.1", "192.168.127.0", "203.0.113.9", "fe80::1", "::ffff:10.0.0.1", "127.0.0.1.evil"])
      expect([address, from(address, "localhost:8080")]).toEqual([address, expect.objectContaining({ code: "forbidden_scope" })]);
    // A page in a browser sends its own host name.
    for (const host of ["localhost:8080", "127.0.0.1", "127.0.0.1:80", "[::1]:8080", "LOCALHOST", undefined])
      expect(from("127.0.0.1", host)).toMatchObject({ id: "anonymous" });
    for (const host of ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1", ""])
      expect(from("127.0.0.1", host)).toMatchObject({ code: "forbidden_scope" });
    expect(from("127.0.0.1", "localhost", true)).toMatchObject({ code: "forbidden_scope" });
  });
});

describe("the rate limit", () => {
  test("counts each caller by itself, and says when to retry", () => {
    let now = 0;
    const limit = new RateLimit(2, () => now);
    expect([limit.take("a"), limit.take("a")]).toEqual([undefined, undefined]);
    expect(limit.take("a")).toMatchObject({ code: "rate_limited", facts: { retryAfterSeconds: 1 } });
    expect(limit.take("b")).toBeUndefined();
    now = 500;
    expect(limit.take("a")).toBeUndefined();
    expect(limit.take("a")).toMatchObject({ code: "rate_limited" });
    now = 1e9;
    expect([limit.take("a"), limit.take("a"), limit.take("a")?.code]).toEqual([undefined, undefined, "rate_limited"]);
  });

  test("remembers a bounded number of callers, and is off at 0", () => {
    const limit = new RateLimit(1, () => 0);
    for (let caller = 0; caller < 10_001; caller++) limit.take(`caller ${caller}`);
    expect(limit.take("caller 10000")).toMatchObject({ code: "rate_limited" });
    expect(limit.take("caller 0")).toBeUndefined();
    expect(new RateLimit(0).take("a")).toBeUndefined();
  });
});
