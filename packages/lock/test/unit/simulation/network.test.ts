// The simulated world's foundations: the order of events and bytes, and processes that stop.
import { describe, expect, test } from "vitest";
import { Chance } from "../../simulation/engine/chance.js";
import { ClientProcess } from "../../simulation/engine/client-process.js";
import { Timeline } from "../../simulation/engine/timeline.js";
import { Direction, Pipe } from "../../simulation/network/direction.js";

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
