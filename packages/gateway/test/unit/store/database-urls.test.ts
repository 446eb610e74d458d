// What is wrong with a database URL.
import { describe, expect, test } from "vitest";
import { databaseUrlFault } from "../../../src/store/database-url.js";

const PASSWORD = "hunter2";

describe("a database URL", () => {
  test.for([
    "postgres://localhost/app",
    "postgresql://user:hunter2@db.example:5433/app?sslmode=verify-full",
    "postgres://user:a%2Fb%40c%25@[::1]:5432/app",
    "postgres:///app?host=/var/run/postgresql",
    "postgres://user@%2Fvar%2Frun/app",
    "postgres://10.0.0.3/app?target_session_attrs=read-write&application_name=x",
    "postgres:///app?host=a&port=5433",
    "postgres://host",
  ])("is accepted: %s", (url) => {
    expect(databaseUrlFault(url)).toBeUndefined();
  });

  test.for([
    ["mysql://user:hunter2@host/app", /^must be a postgres:\/\/ URL$/],
    ["hunter2", /^must be a postgres/],
    ["postgres://user:hunter2@host:54321x/app", /port at its host .* number from 1 to 65535/],
    ["postgres://user:hunter2@host:0/app", /port at its host/],
    ["postgres://user:hunter2@host:70000/app", /port at its host/],
    ["postgres://user:hunter2@host:/app", /port at its host/],
    ["postgres://user:hunter2@a,b:5433/app", /several hosts and must name one: the address of HAProxy, .* \(deploy\/ha shows it\)/],
    ["postgres://user:hunter2@:5432/app", /names no host/],
    ["postgres://user:hunter2@ho st/app", /characters in its host/],
    ["postgres://user:hunter2", /port at its host/],
    ["postgres://user:hunter2/4@host/app", /has a \/, \? or # in its user name or password/],
    ["postgres://user:hunter2#4@host/app", /has a \/, \? or #/],
    ["postgres://user:hunter2?4@host/app", /has a \/, \? or #/],
    ["postgres://user:hunter2@4@host/app", /has an @ .*%40/],
    ["postgres://user:hunter2%4@host/app", /has a % in its user name or password/],
    ["postgres://user:hunter2@host/app%", /name of its database/],
    ["postgres://user:hunter2@host/app?sslmode=requird", /sslmode that is none of disable,/],
    ["postgres://user:hunter2@host/app?sslmode=allow", /sslmode/],
    ["postgres://user:hunter2@host/app?host=other", /host twice/],
    ["postgres:///app?host=a,b&port=1", /several hosts/],
    ["postgres:///app?host=a&port=x", /parameter port/],
  ] as const)("says what is wrong with it, and shows no password: %s", ([url, sentence]) => {
    const fault = databaseUrlFault(url);
    expect(fault).toMatch(sentence);
    expect(fault).not.toContain(PASSWORD);
  });
});
