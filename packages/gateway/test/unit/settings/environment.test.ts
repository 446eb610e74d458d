// The environment: what is understood, and that everything else stops the start with a sentence
// that names it.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { createGateway } from "../../../src/gateway.js";
import { type GatewayConfig, GatewayConfigError, readEnvironment, verifyMode } from "../../../src/settings/settings.js";

const databaseUrl = "postgres://user:hunter2@db.example/app";
const settingsOf = (env: Record<string, string>) => readEnvironment({ DATABASE_URL: databaseUrl, ...env }).settings;

function problemsOf(env: Record<string, string>): readonly string[] {
  try {
    settingsOf(env);
  } catch (error) {
    if (error instanceof GatewayConfigError) return error.problems;
    throw error;
  }
  return [];
}

const key = { id: "worker", sha256: "0".repeat(64), scopes: ["write:orders/"] };

describe("the environment", () => {
  test("needs nothing but a database", () => {
    expect(settingsOf({})).toMatchObject({
      databaseUrl,
      host: "127.0.0.1",
      port: 8080,
      adminPort: 8081,
      durability: "local",
      history: "off",
      bodyLimitBytes: 1_048_576,
    });
  });

  test("is read into numbers, lists and JSON, and an empty variable counts as absent", () => {
    const settings = settingsOf({
      PORT: "9000",
      PALISADE_REDIS_URLS: "redis://a:1, redis://b:2 ,",
      PALISADE_API_KEYS: JSON.stringify([key]),
      PALISADE_HISTORY: " on ",
      PALISADE_POOL_SIZE: "",
    });
    expect(settings).toMatchObject({
      port: 9000,
      redisUrls: ["redis://a:1", "redis://b:2"],
      apiKeys: [key],
      history: "on",
      poolSize: 8,
    });
  });

  test("verifies tokens as soon as there is a lock to ask, and fails closed unless told otherwise", () => {
    expect(verifyMode(settingsOf({}))).toBe("off");
    expect(verifyMode(settingsOf({ PALISADE_REDIS_URLS: "redis://a" }))).toBe("closed");
    expect(verifyMode(settingsOf({ PALISADE_REDIS_URLS: "redis://a", PALISADE_VERIFY: "open" }))).toBe("open");
  });

  const wrong: readonly [Record<string, string>, RegExp][] = [
    [{ DATABASE_URL: "" }, /^DATABASE_URL is missing/],
    [{ DATABASE_URL: "mysql://x" }, /^DATABASE_URL must be a postgres:\/\/ URL\.$/],
    [{ PORT: "http" }, /^PORT must be a whole number from 0 to 65535, not "http"\.$/],
    [{ PORT: "-1" }, /^PORT must/],
    [{ PORT: "8e3" }, /^PORT must/],
    [{ PORT: "65536" }, /^PORT must/],
    [{ PORT: "9000", ADMIN_PORT: "9000" }, /^PORT and ADMIN_PORT are both 9000\.$/],
    [{ PALISADE_VERIFY: "maybe" }, /^PALISADE_VERIFY must be off, open or closed, not "maybe"\.$/],
    [{ PALISADE_VERIFY: "closed" }, /^PALISADE_VERIFY is closed, which needs PALISADE_REDIS_URLS\.$/],
    [{ PALISADE_REDIS_URLS: "http://a" }, /^PALISADE_REDIS_URLS must/],
    [{ PALISADE_DURABILITY: "yes" }, /^PALISADE_DURABILITY must be local or sync/],
    [{ PALISADE_BODY_LIMIT_BYTES: "0" }, /^PALISADE_BODY_LIMIT_BYTES must/],
    [{ HOST: "0.0.0.0" }, /^HOST is 0\.0\.0\.0, but without .* serves only loopback/],
    [{ PALISADE_API_KEYS: "secret" }, /^PALISADE_API_KEYS must be a JSON array/],
    [{ PALISADE_API_KEYS: JSON.stringify([{ ...key, sha256: "short" }]) }, /^PALISADE_API_KEYS must/],
    [{ PALISADE_API_KEYS: JSON.stringify([{ ...key, scopes: ["delete:"] }]) }, /^PALISADE_API_KEYS must/],
    [{ PALISADE_API_KEYS: JSON.stringify([key]), PALISADE_API_KEYS_FILE: "keys.json" }, /cannot both be set/],
    [{ PALISADE_WRITE_TIMEOUT_MS: "9" }, /^PALISADE_WRITE_TIMEOUT_MS must be a whole number from 10 to 600000, not 9\.$/],
    [{ PALISADE_JWT_SECRET: "short" }, /^PALISADE_JWT_SECRET must be at least 32 characters\.$/],
    [{ PALISADE_JWT_SECRET: "x".repeat(32) }, /^PALISADE_JWT_AUDIENCE is missing/],
    [{ PALISADE_JWT_AUDIENCE: "a" }, /^PALISADE_JWT_AUDIENCE needs/],
    [
      { PALISADE_JWT_SECRET: "x".repeat(32), PALISADE_JWT_JWKS_URL: "https://a", PALISADE_JWT_AUDIENCE: "a" },
      /^PALISADE_JWT_SECRET and PALISADE_JWT_JWKS_URL cannot both be set\.$/,
    ],
    [
      { PALISADE_REDIS_URLS: "redis://a:7001,redis://b,redis://:secret@A:7001/2" },
      /^PALISADE_REDIS_URLS names a:7001 twice: each node is a Redis master of its own, and one server must not vote twice\.$/,
    ],
    [{ DATABASE_URL: "postgres://user:hunter2@a,b:5433,a:5432/app" }, /^DATABASE_URL names several hosts and must name one: .*HAProxy/],
    [{ PALISADE_VERFY: "closed" }, /^PALISADE_VERFY is not a setting; did you mean PALISADE_VERIFY\?$/],
  ];
  test.each(wrong)("with %j stops the start with one sentence that names the variable", (env, sentence) => {
    const problems = problemsOf(env);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(sentence);
  });

  test("never shows the value of a variable that may hold a password", () => {
    const told = problemsOf({
      DATABASE_URL: "hunter2",
      PALISADE_JWT_SECRET: "hunter2",
      PALISADE_API_KEYS: "hunter2",
      PALISADE_REDIS_URLS: "hunter2",
    });
    expect(told).toHaveLength(4);
    expect(told.join()).not.toContain("hunter2");
  });

  test("may hold other PALISADE_ names, which are reported and ignored", () => {
    expect(readEnvironment({ DATABASE_URL: databaseUrl, PALISADE_TEST_PROVIDER: "docker" }).unknownNames).toEqual([
      "PALISADE_TEST_PROVIDER",
    ]);
  });
});

describe("a key file", () => {
  const folder = mkdtempSync(join(tmpdir(), "palisade-key-file-"));
  afterAll(() => rmSync(folder, { recursive: true }));
  test.each([
    ["a folder", undefined, "cannot be read \\(EISDIR\\)"],
    ["nothing", "", "is not JSON"],
    ["a private key", "-----BEGIN PRIVATE KEY-----", "is not JSON"],
    ["a list without its name", '[{"id":"a"}]', "is not a list of keys: .*"],
    ["the output of keygen itself", '{"key":"palisade_x","entry":{}}', "is not a list of keys: .*"],
    ["no key at all", '{"keys":[]}', "holds no key, so every call would be refused"],
  ])("that is %s is refused with its path and what makes one", (what, text, reason) => {
    const path = join(folder, what.replaceAll(" ", "-"));
    if (text === undefined) mkdirSync(path);
    else writeFileSync(path, text);
    const advice = '; it is a JSON file \\{"keys":\\[ENTRY, …\\]\\}, and palisade-gateway keygen makes an ENTRY\\.$';
    expect(() => createGateway({ databaseUrl, apiKeysFile: path })).toThrow(
      new RegExp(`^apiKeysFile names ${path}, which ${reason}${advice}`),
    );
  });
});

describe("createGateway", () => {
  test("names settings as its caller wrote them", () => {
    expect(() => createGateway({ databaseUrl, port: -1 })).toThrow("port must be a whole number from 0 to 65535, not -1.");
    expect(() => createGateway({ databaseUrl, ...{ prot: 1 } })).toThrow("prot is not a setting of the gateway; did you mean port?");
    expect(() => createGateway({ databaseUrl, ...{ api: 1 } })).toThrow("api is not a setting of the gateway.");
    expect(() => createGateway(undefined as unknown as GatewayConfig)).toThrow(
      "createGateway needs an object of settings, with databaseUrl.",
    );
    expect(() => createGateway({} as { databaseUrl: string })).toThrow("databaseUrl is missing");
    expect(() => createGateway({ databaseUrl, apiKeysFile: "missing.json" })).toThrow(
      "apiKeysFile names missing.json, which cannot be read (ENOENT)",
    );
    expect(() => createGateway({ databaseUrl, apiKeys: [] })).toThrow("holds no key");
  });

  test("has no address before it listens", () => {
    expect(() => createGateway({ databaseUrl, logLevel: "silent" }).url).toThrow("not listening");
  });
});
