// The parts of the simulation: the command line, the order of events and bytes, processes that stop, Lua
// in simulated servers, and the lease checker, which sees each violation and none where there is none.

import { describe, expect, test } from "vitest";
import type { Lease } from "../../../src/protocol/locker.js";
import { scripts } from "../../../src/redis/lua.generated.js";
import { Unsupported } from "../../simulation/commands.js";
import { Chance, ClientProcess, Timeline } from "../../simulation/engine.js";
import { Direction, Pipe } from "../../simulation/network.js";
import { type ScriptName, SimServer } from "../../simulation/sim-server.js";
import { type Holding, LeaseChecker } from "../../simulation/world/judges.js";
import { controls } from "../../simulation/world/rules.js";

function process(timeline: Timeline): ClientProcess {
  return new ClientProcess("p1", timeline, { rate: 1, wallAheadMs: 0, chance: new Chance(1) });
}

describe("the timeline", () => {
  test("lets events happen in the order of their moments, and those of one moment in the order of their planning", async () => {
    const timeline = new Timeline();
    const happened: string[] = [];
    for (const [at, name] of [
      [5, "c"],
      [1, "a"],
      [5, "d"],
      [1, "b"],
    ] as const)
      timeline.at(at, () => happened.push(`${timeline.now}${name}`));
    timeline.at(2, () => happened.push("never")).run = undefined;
    await timeline.play(() => false);
    expect(happened).toEqual(["1a", "1b", "5c", "5d"]);
  });

  test("finishes what a turn has left for its end before the next event", async () => {
    const timeline = new Timeline();
    const happened: string[] = [];
    timeline.at(1, () => {
      timeline.beginTurn();
      void Promise.resolve().then(() =>
        globalThis.process.nextTick(() => void Promise.resolve().then(() => happened.push("end of the turn"))),
      );
    });
    timeline.at(1, () => happened.push("next"));
    await timeline.play(() => false);
    expect(happened).toEqual(["end of the turn", "next"]);
  });
});

describe("a connection", () => {
  test("lets nothing overtake, whatever the delays are and however long bytes are held", async () => {
    const timeline = new Timeline();
    const way = new Direction(timeline, { leastMs: 0.1, jitterMs: 20 }, new Chance(3));
    const arrived: number[] = [];
    const pipe = new Pipe<number>(timeline, way, (message) => arrived.push(message));
    for (let i = 0; i < 200; i++) timeline.at(i, () => pipe.send(i));
    timeline.at(30, () => way.hold());
    timeline.at(90, () => way.open());
    timeline.at(120, () => way.hold());
    timeline.at(400, () => way.open());
    await timeline.play(() => false);
    expect(arrived).toEqual(Array.from({ length: 200 }, (_, i) => i));
  });
});

describe("a process", () => {
  test("that was stopped does first what its timers were due for, then what arrived", async () => {
    const timeline = new Timeline();
    const one = process(timeline);
    const done: string[] = [];
    const cleared = one.setTimer(6, () => done.push("cleared"));
    one.setTimer(5, () => {
      done.push("timer");
      one.clearTimer(cleared);
    });
    timeline.at(1, () => one.stop());
    timeline.at(3, () => one.arrive(() => done.push("bytes")));
    timeline.at(20, () => one.continue());
    await timeline.play(() => false);
    expect(done).toEqual(["timer", "bytes"]);
  });

  test("that died does nothing any more", async () => {
    const timeline = new Timeline();
    const one = process(timeline);
    one.setTimer(5, () => expect.unreachable());
    timeline.at(1, () => one.die());
    timeline.at(2, () => one.arrive(() => expect.unreachable()));
    await timeline.play(() => false);
  });
});

const clock = { rate: 1, aheadMs: 0 };
const run = (source: string): unknown =>
  new SimServer({ name: "n1", now: () => 0, clock, appendfsync: "no" }).eval(source, 1, ["key", "1", "text"]);

describe("a script in a simulated server", () => {
  test("is compiled once for all lives of a server, whose line comes before its text", () => {
    const text = "return { RETENTION, RUN, #KEYS, ARGV[2] }";
    expect(run(`local RETENTION, RUN = '60', 'one'\n${text}`)).toEqual(["60", "one", 1, "text"]);
    expect(run(`local RETENTION, RUN = '70', false\n${text}`)).toEqual(["70", null, 1, "text"]);
  });

  test("is refused where a simulated server does not know what Redis would answer", () => {
    const unsupported = [
      "return redis.call('LPUSH', KEYS[1], 'a')",
      "return redis.call('SET', KEYS[1], 'a', 'EX', '1')",
      "return redis.call('INFO', 'memory')",
      "return redis.call('SET', KEYS[1], 1.5)",
      "return pcall(redis.call, 'LPUSH')",
      "count = 1",
      "while true do end",
      "for i = 3, 1, -1 do end",
      "return string.match(ARGV[2], '.-')",
      "return string.format('%5.2f', 1)",
      "return tonumber('0x10')",
      "local list = {} list[3] = 1",
    ];
    for (const source of unsupported) expect(() => run(source), source).toThrow(Unsupported);
  });

  test("is answered with an error of Redis where Redis has one", () => {
    expect(() => run("return redis.call('INCR', KEYS[1], 'a')")).toThrow("ERR Wrong number of args calling Redis command from script");
    expect(() => run("redis.call('SET', KEYS[1], 'a') return redis.call('INCR', KEYS[1])")).toThrow("ERR value is not an integer");
    expect(() => run("error({ err = 'FULL no token is left' })")).toThrow("FULL no token is left");
  });
});

describe("a control", () => {
  test("finds each text that it edits exactly once in a script", () => {
    const texts = Object.entries(scripts) as [ScriptName, string][];
    const edits = Object.values(controls).flatMap(({ edit }) => (edit === undefined ? [] : [edit]));
    expect(edits).toHaveLength(16);
    for (const edit of edits) expect(texts.filter(([name, text]) => edit(name, text) !== text)).toHaveLength(1);
  });
});

const timeline = new Timeline();
const client = new ClientProcess("p1", timeline, { rate: 1, wallAheadMs: 0, chance: new Chance(1) });

function judged(...given: readonly (Partial<Holding> & Pick<Holding, "token">)[]): readonly string[] {
  const checker = new LeaseChecker(() => timeline.now, "with exclusion");
  for (const each of given) {
    timeline.now = each.grantedAt ?? 0;
    const lease = { resource: "r", remainingMs: () => 1 } as unknown as Lease;
    checker.given({
      client,
      lease,
      resources: ["r"],
      beganAt: 0,
      grantedAt: 0,
      validUntilAt: 0,
      endedAt: undefined,
      asks: "the lease",
      ...each,
    });
  }
  return checker.violations.map(({ promise }) => promise);
}

describe("the lease checker", () => {
  test("T1 sees a token that is not above one given before it was asked for", () => {
    expect(judged({ token: 5, grantedAt: 10 }, { token: 4, beganAt: 11, grantedAt: 12 })).toEqual(["T1"]);
    expect(judged({ token: 5, grantedAt: 10 }, { token: 4, beganAt: 9, grantedAt: 12 })).toEqual([]);
    expect(judged({ token: 5, grantedAt: 10 }, { token: 6, beganAt: 11, grantedAt: 12 })).toEqual([]);
  });

  test("T2 sees a token that is given twice", () => {
    expect(judged({ token: 5, grantedAt: 10 }, { token: 5, beganAt: 9, grantedAt: 12 })).toEqual(["T2"]);
  });

  test("L1 sees a holder that learns of the end too late, unless it was stopped meanwhile", () => {
    const judgedAt = (continuedAt: number): readonly string[] => {
      const checker = new LeaseChecker(() => 20, "with exclusion");
      const lease = { resource: "r", remainingMs: () => 0 } as unknown as Lease;
      const holder = new ClientProcess("p1", timeline, { rate: 1, wallAheadMs: 0, chance: new Chance(1) });
      holder.continuedAt = continuedAt;
      checker.learnedOfEnd({
        client: holder,
        lease,
        resources: ["r"],
        token: 1,
        beganAt: 0,
        grantedAt: 0,
        validUntilAt: 10,
        endedAt: undefined,
        asks: "the lease",
      });
      return checker.violations.map(({ promise }) => promise);
    };
    expect(judgedAt(0)).toEqual(["L1"]);
    expect(judgedAt(19)).toEqual([]);
  });

  test("L2 sees a lease that is given while another one lasts", () => {
    const first = { token: 5, grantedAt: 10, validUntilAt: 100 };
    expect(judged(first, { token: 6, grantedAt: 50, validUntilAt: 150 })).toEqual(["L2"]);
    expect(judged({ ...first, endedAt: 40 }, { token: 6, grantedAt: 50, validUntilAt: 150 })).toEqual([]);
    expect(judged(first, { token: 6, grantedAt: 101, validUntilAt: 150 })).toEqual([]);
  });
});
