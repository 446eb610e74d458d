// The words of an unreachable ballot, for errors as ioredis and Redis word them.
import { describe, expect, test } from "vitest";
import { causeOf, causeOfText } from "../../../src/redis/causes.js";

describe("causes", () => {
  test.each([
    [Object.assign(new Error("connect ECONNREFUSED 127.0.0.1:1"), { code: "ECONNREFUSED" }), "ECONNREFUSED"],
    [Object.assign(new AggregateError([new Error("a"), new Error("b")]), { code: "ETIMEDOUT" }), "ETIMEDOUT"],
    [new Error("Connection is closed."), "connection lost"],
    [new Error("Stream isn't writeable and enableOfflineQueue options is false"), "connection lost"],
    [new Error("WRONGPASS invalid username-password pair or user is disabled."), "WRONGPASS: user name or password refused"],
    [new Error("something new"), "something new"],
    ["not even an error", "not even an error"],
  ])("%s is %s", (error, cause) => {
    expect(causeOf(error)).toBe(cause);
  });

  test.each([
    ["READONLY You can't write against a read only replica. script: 0f, on @user_script:9.", /^READONLY: a replica/],
    ["-READONLY You can't write against a read only replica.", /^READONLY: a replica/],
    [
      "ERR Error running script (call to f_0): @user_script:1: -OOM command not allowed when used memory > 'maxmemory'.",
      /^OOM: out of memory/,
    ],
    ["NOPERM this user has no permissions to run the 'eval' command", /^NOPERM: .* \(\+eval\)$/],
    ["NOPERM User least has no permissions to run the 'config|get' command", /^NOPERM: .* \(\+config\|get\)$/],
    ["ERR The user executing the script can't run this command or subcommand script: 0f, on @user_script:4.", /^NOPERM: /],
    ["LOADING Redis is loading the dataset in memory", /^LOADING: still reading/],
    ['Protocol error, got "H" as reply type byte. Please report this.', /^garbage reply/],
  ])("%s means %s", (text, cause) => {
    expect(causeOfText(text)).toMatch(cause);
  });

  test("no cause is longer than a line", () => {
    expect(causeOf(new Error("x".repeat(500)))).toHaveLength(120);
  });
});
