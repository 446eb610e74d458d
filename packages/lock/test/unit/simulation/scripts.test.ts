// Lua in the simulated servers: what they do not implement ends the run, and controls edit the Lua.
import { describe, expect, test } from "vitest";
import * as lua from "../../../src/redis/lua.generated.js";
import { Unsupported } from "../../simulation/server/memory.js";
import { type ScriptName, SimServer } from "../../simulation/server/sim-server.js";
import { controls } from "../../simulation/world/controls.js";

const clock = { rate: 1, aheadMs: 0 };
const run = (source: string): unknown =>
  new SimServer({ name: "n1", now: () => 0, clock, appendfsync: "no" }).eval(source, 1, ["key", "1", "text"]);

describe("a script in a simulated server", () => {
  test("is compiled once for all lives of a server, whose line comes before its text", () => {
    const text = "return { RETENTION, RUN, #KEYS, ARGV[2] }";
    expect(run(`local RETENTION, RUN = '60', 'one'\n${text}`)).toEqual(["60", "one", 1, "text"]);
    expect(run(`local RETENTION, RUN = '70', false\n${text}`)).toEqual(["70", null, 1, "text"]);
  });

  test.for([
    "return redis.call('LPUSH', KEYS[1], 'a')",
    "return redis.call('SET', KEYS[1], 'a', 'EX', '1')",
    "return redis.call('INFO', 'memory')",
    "return redis.call('SET', KEYS[1], 1.5)",
    "return pcall(redis.call, 'LPUSH')",
    "return cjson.encode(KEYS)",
    "count = 1",
    "while true do end",
    "for i = 3, 1, -1 do end",
    "return string.match(ARGV[2], '.-')",
    "return string.format('%5.2f', 1)",
    "return tonumber('0x10')",
    "local list = {} list[3] = 1",
  ])("refuses %s", (source) => {
    expect(() => run(source)).toThrow(Unsupported);
  });

  test.for([
    ["return redis.call('INCR', KEYS[1], 'a')", "ERR Wrong number of args calling Redis command from script"],
    ["redis.call('SET', KEYS[1], 'a') return redis.call('INCR', KEYS[1])", "ERR value is not an integer or out of range"],
    ["error({ err = 'FULL no token is left' })", "FULL no token is left"],
  ] as const)("answers %s with an error of Redis", ([source, message]) => {
    expect(() => run(source)).toThrow(message);
  });
});

describe("a control", () => {
  test("finds each text that it edits exactly once in a script", () => {
    const scripts = Object.entries(lua).map(([name, text]) => [name.slice(0, -"Script".length) as ScriptName, text] as const);
    const edits = Object.values(controls).flatMap(({ edit }) => (edit === undefined ? [] : [edit]));
    expect(edits).toHaveLength(16);
    for (const edit of edits) expect(scripts.filter(([name, text]) => edit(name, text) !== text)).toHaveLength(1);
  });
});
