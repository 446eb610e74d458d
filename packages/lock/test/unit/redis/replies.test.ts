// Replies of another shape than our scripts give are garbage, never a ballot.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type AnyVerb, GarbageReply, type QuestionOf, type Verb, verbs } from "../../../src/protocol/verbs.js";
import { causeOf, causeOfText } from "../../../src/redis/connection.js";
import { admissionCalls } from "./admission-calls.js";

const heard = { node: "n1", epoch: "e" };
const lease = { resources: ["a", "b"], owner: "o", label: "l", ttlMs: 1, token: 2, tells: true };
const anything = fc.anything({
  maxDepth: 2,
  values: [fc.integer(), fc.string(), fc.constant(null), fc.double(), fc.constantFrom("", "1", "0")],
});

const questions: { readonly [V in Verb]: QuestionOf<V> } = {
  grant: lease,
  claim: { ...lease, wait: { sinceMs: 1, waitedMs: 1, ticket: ":t", reserveMs: 40 } },
  seal: lease,
  extend: lease,
  heal: lease,
  release: lease,
  leave: { ...lease, ticket: ":t" },
  inspect: lease,
  raise: lease,
};
const words: { readonly [V in Verb]: readonly string[] } = {
  grant: ["granted", "held"],
  claim: ["granted", "held"],
  seal: ["sealed", "lost"],
  extend: ["extended", "missing", "taken"],
  heal: ["extended", "missing", "taken"],
  release: ["released", "absent"],
  leave: ["released", "absent"],
  inspect: ["seen"],
  raise: ["raised", "kept"],
};

describe("replies", () => {
  test.each(Object.keys(verbs) as Verb[])("%s reads a ballot of its own or says that the reply is garbage", (name) => {
    const verb = verbs[name] as AnyVerb;
    fc.assert(
      fc.property(anything, (reply) => {
        try {
          expect(words[name]).toContain(verb.read(heard, reply, questions[name]).kind);
        } catch (error) {
          expect(error).toBeInstanceOf(GarbageReply);
        }
      }),
    );
  });

  test("T2 a grant is never read from a number that is no token", () => {
    for (const reply of [0, -1, 1.5, 1e15, Number.NaN, Number.POSITIVE_INFINITY, "7", [7], true]) {
      expect(() => verbs.grant.read(heard, reply, lease)).toThrow(GarbageReply);
    }
  });

  test("a holder is shown by its label, which may contain anything, and a key without an end by the longest time a timer can wait", () => {
    const held = verbs.grant.read(heard, [2, "owner|a|b", -1], lease);
    expect(held).toEqual({
      kind: "held",
      node: "n1",
      resource: "b",
      holder: "a|b",
      remainingMs: 2 ** 31 - 1,
    });
    expect(verbs.extend.read(heard, ["owner|", -2], lease)).toMatchObject({
      kind: "taken",
      holder: "",
      remainingMs: 0,
    });
  });

  test("the scripts of the admission read what they expect or say that the reply is garbage", () => {
    fc.assert(
      fc.property(anything, (reply) => {
        for (const call of Object.values(admissionCalls)) {
          try {
            const read = call.read(reply);
            expect(["undefined", "number", "object", "boolean"]).toContain(typeof read);
          } catch (error) {
            expect(error).toBeInstanceOf(GarbageReply);
          }
        }
      }),
    );
  });
});

// The words of an unreachable ballot, for errors as ioredis and Redis word them.
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
