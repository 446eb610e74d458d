// What palisade-dev can be told, and what it answers to what it cannot.
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { readArguments, UsageError } from "../../src/command-line.js";
import { API_KEY } from "../../src/stack.js";

test("without arguments the addresses and the key are those of the README", () => {
  expect(readArguments([])).toEqual({ port: 8080, redisPort: 7001, postgresPort: 7432, redisUrls: undefined, databaseUrl: undefined });
  const readme = readFileSync(new URL("../../../../README.md", import.meta.url), "utf8");
  for (const part of ["[7001, 7002, 7003, 7004, 7005]", "http://127.0.0.1:8080", `apiKey: "${API_KEY}"`]) expect(readme).toContain(part);
});

test("servers that run already are taken in place of own ones", () => {
  expect(readArguments(["--redis", "redis://a,redis://b", "--postgres", "postgres://c/d"])).toMatchObject({
    redisUrls: ["redis://a", "redis://b"],
    databaseUrl: "postgres://c/d",
  });
});

test.each([
  [["--port", "99999"], '--port is a port from 0 to 65534, not "99999".'],
  [["--redis-port", "seven"], '--redis-port is a port from 0 to 65531, not "seven".'],
  [["--redis", "a:6379"], '--redis takes redis:// URLs, with commas between them, not "a:6379".'],
  [["--postgres", "mysql://a"], '--postgres takes a postgres:// URL, not "mysql://a".'],
  [["--wat"], "Unknown option '--wat'."],
  [["start"], "Unexpected argument 'start'."],
])("%s is refused before anything is started", (args, sentence) => {
  expect(() => readArguments(args)).toThrow(UsageError);
  expect(() => readArguments(args)).toThrow(sentence);
});
