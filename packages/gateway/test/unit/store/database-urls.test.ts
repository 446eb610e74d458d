// What is wrong with a database URL, and the URL of each of its hosts.
import { describe, expect, test } from "vitest";
import { databaseUrlFault, databaseUrlsOf } from "../../../src/store/database-urls.js";

const PASSWORD = "hunter2";

describe("a database URL", () => {
  test.for([
    "postgres://localhost/app",
    "postgresql://user:hunter2@db.example:5433/app?sslmode=verify-full",
    "postgres://user:a%2Fb%40c%25@[::1]:5432/app",
    "postgres:///app?host=/var/run/postgresql",
    "postgres://user@%2Fvar%2Frun/app",
    "postgres://db_1,db-2:5433,10.0.0.3/app?target_session_attrs=read-write&application_name=x",
    "postgres:///app?host=a,b&port=5432,5433",
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
    ["postgres://user:hunter2@a,b:x/app", /port at host 2 of 2/],
    ["postgres://user:hunter2@a,,c/app", /names no host for host 2 of 3/],
    ["postgres://user:hunter2@:5432/app", /names no host for its host/],
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
    ["postgres://user:hunter2@host/app?target_session_attrs=standby", /target_session_attrs .* a gateway writes/],
    ["postgres://user:hunter2@host/app?host=other", /host twice/],
    ["postgres:///app?host=a,b,c&port=1,2", /as many ports as hosts/],
    ["postgres:///app?host=a&port=x", /parameter port/],
  ] as const)("says what is wrong with it, and shows no password: %s", ([url, sentence]) => {
    const fault = databaseUrlFault(url);
    expect(fault).toMatch(sentence);
    expect(fault).not.toContain(PASSWORD);
  });

  test("with one host stays as it is", () => {
    for (const url of ["postgres://u:p@host:5433/app?sslmode=disable&x=1", "postgres:///app?host=/tmp"])
      expect(databaseUrlsOf(url)).toEqual([url]);
  });

  test("with several hosts is one URL for each, in their order", () => {
    expect(databaseUrlsOf("postgresql://u:p%2F@a,b:5433,[::1]:1/app?target_session_attrs=read-write&sslmode=disable")).toEqual([
      "postgres://u:p%2F@a/app?sslmode=disable",
      "postgres://u:p%2F@b:5433/app?sslmode=disable",
      "postgres://u:p%2F@[::1]:1/app?sslmode=disable",
    ]);
    expect(databaseUrlsOf("postgres://u:p@/app?host=a,::1&port=5432,5433")).toEqual([
      "postgres://u:p@a:5432/app",
      "postgres://u:p@[::1]:5433/app",
    ]);
    expect(databaseUrlsOf("postgres:///app?host=a,b&port=6432")).toEqual(["postgres://a:6432/app", "postgres://b:6432/app"]);
  });
});
