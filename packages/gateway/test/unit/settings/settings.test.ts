// The settings: what is understood, that everything else stops the start with a sentence that names
// it and never with a password, and the limits that follow from them.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { databaseUrlFault } from "@palisade/guard/gateway";
import { afterAll, describe, expect, test } from "vitest";
import { createGateway } from "../../../src/gateway.js";
import { storeLimits } from "../../../src/limits.js";
import { type GatewayConfig, GatewayConfigError, readEnvironment, settings, verifyMode } from "../../../src/settings/settings.js";

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
  test("needs nothing but a database, and is read into numbers, lists and JSON; an empty variable counts as absent", () => {
    const preset = { host: "127.0.0.1", port: 8080, adminPort: 8081, durability: "local", history: "off", bodyLimitBytes: 1_048_576 };
    expect(settingsOf({})).toMatchObject({ databaseUrl, ...preset });
    const env = { PORT: "9000", PALISADE_REDIS_URLS: "redis://a:1, redis://b:2 ,", PALISADE_HISTORY: " on ", PALISADE_POOL_SIZE: "" };
    const read = { port: 9000, redisUrls: ["redis://a:1", "redis://b:2"], apiKeys: [key], history: "on", poolSize: 8 };
    expect(settingsOf({ ...env, PALISADE_API_KEYS: JSON.stringify([key]) })).toMatchObject(read);
  });

  test("verifies tokens as soon as there is a lock to ask, and fails closed unless told otherwise", () => {
    expect(verifyMode(settingsOf({}))).toBe("off");
    expect(verifyMode(settingsOf({ PALISADE_REDIS_URLS: "redis://a" }))).toBe("closed");
    expect(verifyMode(settingsOf({ PALISADE_REDIS_URLS: "redis://a", PALISADE_VERIFY: "open" }))).toBe("open");
  });

  const wrongPort = (port: string): [Record<string, string>, RegExp] => [
    { PORT: port },
    new RegExp(`^PORT must be a whole number from 0 to 65535, not "?${port}"?\\.$`),
  ];
  const wrong: readonly [Record<string, string>, RegExp][] = [
    [{ DATABASE_URL: "" }, /^DATABASE_URL is missing/],
    ...["http", "-1", "8e3", "65536"].map((port) => wrongPort(port)),
    [{ PORT: "9000", ADMIN_PORT: "9000" }, /^PORT and ADMIN_PORT are both 9000\.$/],
    [{ PALISADE_VERIFY: "maybe" }, /^PALISADE_VERIFY must be off, open or closed, not "maybe"\.$/],
    [{ PALISADE_VERIFY: "closed" }, /^PALISADE_VERIFY is closed, which needs PALISADE_REDIS_URLS\.$/],
    [{ PALISADE_REDIS_URLS: "http://a" }, /^PALISADE_REDIS_URLS must/],
    [{ PALISADE_DURABILITY: "yes" }, /^PALISADE_DURABILITY must be local or sync/],
    [{ PALISADE_BODY_LIMIT_BYTES: "0" }, /^PALISADE_BODY_LIMIT_BYTES must/],
    [{ HOST: "0.0.0.0", PALISADE_API_KEYS: "none" }, /^HOST is 0\.0\.0\.0, but with PALISADE_API_KEYS none .* serves only loopback/],
    [{ PALISADE_API_KEYS: "none", PALISADE_API_KEYS_FILE: "keys.json" }, /cannot both be set/],
    [
      { PALISADE_API_KEYS: "none", PALISADE_JWT_SECRET: "x".repeat(32), PALISADE_JWT_AUDIENCE: "a" },
      /^PALISADE_API_KEYS is none, and PALISADE_JWT_SECRET is set\.$/,
    ],
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
    [{ PALISADE_VERFY: "closed" }, /^PALISADE_VERFY is not a setting; did you mean PALISADE_VERIFY\?$/],
    [{ PALISADE_PORT: "9000" }, /^PALISADE_PORT is not a setting; did you mean PORT\?$/],
    [{ PALISADE_DATABASE_URL: databaseUrl }, /^PALISADE_DATABASE_URL is not a setting; did you mean DATABASE_URL\?$/],
  ];
  test("stops the start with one sentence that names the variable that is wrong", () => {
    for (const [env, sentence] of wrong) expect([env, problemsOf(env)]).toEqual([env, [expect.stringMatching(sentence)]]);
  });

  test("may hold what Kubernetes sets for a service that is called palisade", () => {
    const links = { PALISADE_PORT: "tcp://10.0.0.1:8080", PALISADE_SERVICE_HOST: "10.0.0.1", PALISADE_PORT_8080_TCP_PORT: "8080" };
    expect(readEnvironment({ DATABASE_URL: databaseUrl, ...links })).toMatchObject({
      settings: { port: 8080 },
      unknownNames: Object.keys(links),
    });
  });

  test("never shows the value of a variable that may hold a password", () => {
    const names = ["DATABASE_URL", "PALISADE_JWT_SECRET", "PALISADE_API_KEYS", "PALISADE_REDIS_URLS"];
    const told = problemsOf(Object.fromEntries(names.map((name) => [name, "hunter2"])));
    expect([told.length, told.join().includes("hunter2")]).toEqual([4, false]);
  });
});

describe("a key file", () => {
  const folder = mkdtempSync(join(tmpdir(), "palisade-key-file-"));
  afterAll(() => rmSync(folder, { recursive: true }));

  test("that holds no list of keys is refused with its path and what makes one", () => {
    const advice = '; it is a JSON file \\{"keys":\\[ENTRY, …\\]\\}, and npx @palisade/gateway keygen makes an ENTRY\\.$';
    for (const [what, text, reason] of [
      ["a-folder", undefined, "cannot be read \\(EISDIR\\)"],
      ["nothing", "", "is not JSON"],
      ["a-private-key", "-----BEGIN PRIVATE KEY-----", "is not JSON"],
      ["a-list-without-its-name", '[{"id":"a"}]', "is not a list of keys: .*"],
      ["the-output-of-keygen-itself", '{"key":"palisade_x","entry":{}}', "is not a list of keys: .*"],
      ["no-key-at-all", '{"keys":[]}', "holds no key, so every call would be refused"],
    ] as const) {
      const path = join(folder, what);
      if (text === undefined) mkdirSync(path);
      else writeFileSync(path, text);
      const sentence = new RegExp(`^apiKeysFile names ${path}, which ${reason}${advice}`);
      expect(() => createGateway({ databaseUrl, apiKeysFile: path })).toThrow(sentence);
    }
  });
});

test("G2 a gateway wants credentials unless its settings say that it wants none", () => {
  const told = /^No credentials are configured: set apiKeysFile, apiKeys or a JWT setting\. For development apiKeys may be none/;
  expect(() => createGateway({ databaseUrl })).toThrow(told);
  expect(() => createGateway({ databaseUrl, apiKeys: "none", logLevel: "silent" })).not.toThrow();
});

test("createGateway names settings as its caller wrote them, and has no address before it listens", () => {
  for (const [given, sentence] of [
    [{ databaseUrl, port: -1 }, "port must be a whole number from 0 to 65535, not -1."],
    [{ databaseUrl, prot: 1 }, "prot is not a setting of the gateway; did you mean port?"],
    [{ databaseUrl, api: 1 }, "api is not a setting of the gateway."],
    [undefined, "createGateway needs an object of settings, with databaseUrl."],
    [{ databaseUrl, redisUrls: "redis://a,redis://b" }, 'redisUrls must be an array of redis:// URLs, not text: write text.split(",")'],
    [{}, "databaseUrl is missing"],
    [{ databaseUrl, apiKeysFile: "missing.json" }, "apiKeysFile names missing.json, which cannot be read (ENOENT)"],
    [{ databaseUrl, apiKeys: [] }, "holds no key"],
  ] as const)
    expect(() => createGateway(given as GatewayConfig)).toThrow(sentence);
  expect(() => createGateway({ databaseUrl, apiKeys: "none", logLevel: "silent" }).url).toThrow("not listening");
});

describe("a database URL", () => {
  test("may be of any form that Postgres takes with one server", () => {
    for (const url of [
      "postgres://localhost/app",
      "postgresql://user:hunter2@db.example:5433/app?sslmode=verify-full",
      "postgres://user:a%2Fb%40c%25@[::1]:5432/app",
      "postgres:///app?host=/var/run/postgresql",
      "postgres://user@%2Fvar%2Frun/app",
      "postgres://10.0.0.3/app?target_session_attrs=read-write&application_name=x",
      "postgres:///app?host=a&port=5433",
      "postgres://host",
    ])
      expect([url, databaseUrlFault(url)]).toEqual([url, undefined]);
  });

  test("that cannot be right says what is wrong with it, and shows no password", () => {
    const wrong: Readonly<Record<string, RegExp>> = {
      "mysql://user:hunter2@host/app": /^must be a postgres:\/\/ URL$/,
      "postgres://user:hunter2@host:54321x/app": /port at its host .* number from 1 to 65535/,
      "postgres://user:hunter2@host:70000/app": /port at its host/,
      "postgres://user:hunter2@host:/app": /port at its host/,
      "postgres://user:hunter2@a,b:5433/app": /several hosts and must name one: the address of HAProxy, .* \(deploy\/ha shows it\)/,
      "postgres://user:hunter2@:5432/app": /names no host/,
      "postgres://user:hunter2@ho st/app": /characters in its host/,
      "postgres://user:hunter2/4@host/app": /has a \/, \? or # in its user name or password/,
      "postgres://user:hunter2@4@host/app": /has an @ .*%40/,
      "postgres://user:hunter2%4@host/app": /has a % in its user name or password/,
      "postgres://user:hunter2@host/app%": /name of its database/,
      "postgres://user:hunter2@host/app?sslmode=requird": /sslmode that is none of disable,/,
      "postgres://user:hunter2@host/app?host=other": /host twice/,
      "postgres:///app?host=a,b&port=1": /several hosts/,
      "postgres:///app?host=a&port=x": /parameter port/,
    };
    for (const [url, sentence] of Object.entries(wrong)) {
      expect([url, databaseUrlFault(url)]).toEqual([url, expect.stringMatching(sentence)]);
      expect(databaseUrlFault(url)).not.toContain("hunter2");
    }
  });
});

describe("the limits of a store whose operator has set nothing, or one of them", () => {
  test("are each shorter than the one that would hide it, however long a write may take", () => {
    for (const writeTimeoutMs of [undefined, 10, 100, 5_000, 600_000]) {
      const limits = storeLimits({ writeTimeoutMs });
      expect(Object.values(limits).every((limit) => Number.isInteger(limit) && limit > 0)).toBe(true);
      expect(limits.batchLockWaitMs).toBeLessThan(limits.statementTimeoutMs);
      expect(limits.statementTimeoutMs).toBeLessThan(limits.writeTimeoutMs);
    }
  });

  test("all grow with the one for writes, unless another was asked for", () => {
    const grown = { readTimeoutMs: 50_000, maxWaitMs: 50_000, statementTimeoutMs: 40_000, connectTimeoutMs: 20_000, batchLockWaitMs: 90 };
    expect(storeLimits({ writeTimeoutMs: 50_000, batchLockWaitMs: 90 })).toMatchObject(grown);
  });
});

test("docker-compose.yml takes passwords of any character, that of Redis reaches servers, health checks and gateway, and it sets what is a setting", () => {
  const compose = readFileSync(new URL("../../../../../docker-compose.yml", import.meta.url), "utf8");
  expect(compose).toMatch(/PGPASSWORD: \$\{POSTGRES_PASSWORD:-/);
  expect(compose.match(/:\/\/.*POSTGRES_PASSWORD/g)).toBeNull();
  expect(compose).toMatch(/redis-server - <<END\s+requirepass "\$\$REDISCLI_AUTH"/); // Never an argument.
  expect(compose).toMatch(/REDISCLI_AUTH: \$\{REDIS_PASSWORD:-\}/);
  expect(compose.match(/redis:\/\/:\$\{REDIS_PASSWORD:-\}@redis-[1-5]:6379/g)).toHaveLength(5);
  const known: readonly string[] = Object.values(settings).map(({ env }) => env);
  const named = compose.match(/\bPALISADE_[A-Z_]+/g) ?? [];
  expect([named.length > 2, named.filter((name) => !known.includes(name))]).toEqual([true, []]);
});
