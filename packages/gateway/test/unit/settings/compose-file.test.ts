// docker-compose.yml with passwords of the user's own.
import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";

const compose = await readFile(new URL("../../../../../docker-compose.yml", import.meta.url), "utf8");

test("the password of Postgres stands in no URL of the compose file, so it may have any character", () => {
  expect(compose).toMatch(/PGPASSWORD: \$\{POSTGRES_PASSWORD:-/);
  expect(compose.match(/:\/\/.*POSTGRES_PASSWORD/g)).toBeNull();
});

test("a password of Redis reaches its servers, their health check and the gateway", () => {
  expect(compose).toMatch(/"--requirepass",\s+"\$\{REDIS_PASSWORD:-\}"/);
  expect(compose).toMatch(/REDISCLI_AUTH: \$\{REDIS_PASSWORD:-\}/);
  expect(compose.match(/redis:\/\/:\$\{REDIS_PASSWORD:-\}@redis-[1-5]:6379/g)).toHaveLength(5);
});
