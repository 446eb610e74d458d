// What palisade-dev can be told, and what it answers to what it cannot.
import { readFileSync } from "node:fs";
import { UsageError } from "@palisade/testkit";
import { expect, test } from "vitest";
import { readOptions } from "../../src/command-line.js";
import { API_KEY } from "../../src/stack.js";

test("without arguments the addresses and the key are those of the README", () => {
  expect(readOptions([])).toEqual({ port: 8080, redisPort: 7001, postgresPort: 7432, redisUrls: undefined, databaseUrl: undefined });
  const readme = readFileSync(new URL("../../../../README.md", import.meta.url), "utf8");
  for (const part of ["[7001, 7002, 7003, 7004, 7005]", "http://127.0.0.1:8080", `apiKey: "${API_KEY}"`]) expect(readme).toContain(part);
});

test("servers that run already are taken in place of own ones", () => {
  expect(readOptions(["--redis", "redis://a,redis://b", "--postgres", "postgres://c/d"])).toMatchObject({
    redisUrls: ["redis://a", "redis://b"],
    databaseUrl: "postgres://c/d",
  });
});

test.each([
  [["--port", "99999"], '--port takes a whole number from 0 to 65534, not "99999".'],
  [["--redis-port", "seven"], '--redis-port takes a whole number from 0 to 65531, not "seven".'],
  [["--redis", "a:6379"], '--redis takes redis:// URLs, with commas between them, not "a:6379".'],
  [["--postgres", "mysql://a"], '--postgres takes a postgres:// URL, not "mysql://a".'],
  [["--wat"], "Unknown option '--wat'; there are --port, --redis-port, --postgres-port, --redis, --postgres, --help."],
  [["start"], "Unexpected argument 'start'."],
])("%s is refused before anything is started", (args, sentence) => {
  expect(() => readOptions(args)).toThrow(UsageError);
  expect(() => readOptions(args)).toThrow(sentence);
});
