// The command lines of all runs: what may be asked for, and the answers to what makes no sense.
import { describe, expect, test } from "vitest";
import { type Command, readValues } from "../../src/harness/command.js";
import { citusCommand } from "../../src/profiles/citus.js";
import { haCommand } from "../../src/profiles/ha.js";
import { lockCommand } from "../../src/profiles/lock.js";
import { soakCommand } from "../../src/profiles/soak-command.js";
import { systemCommand } from "../../src/profiles/system.js";

function reading<Asked>({ read, texts, flags }: Pick<Command<Asked>, "read" | "texts" | "flags">): (...args: readonly string[]) => Asked {
  return (...args) => read(readValues(args, texts, flags));
}

const readSystem = reading(systemCommand);
const readHa = reading(haCommand);
const readCitus = reading(citusCommand);
const readLock = reading(lockCommand);
const readSoak = reading(soakCommand);

describe("a run of the whole system", () => {
  test("is five minutes with the fence and a seed of its own, unless asked otherwise", () => {
    const files = { json: undefined, svg: undefined, html: undefined };
    expect(readSystem()).toMatchObject({ isControl: false, clients: 10, durationMs: 300_000, ...files });
    expect(readSystem().seed).not.toBe("");
    expect(readSystem("--minutes", "0.5", "--seed", "s", "--control", "--clients", "12", "--html", "run.html")).toMatchObject({
      isControl: true,
      clients: 12,
      durationMs: 30_000,
      seed: "s",
      html: "run.html",
    });
  });

  test("is short of two minutes by as much as starting and judging take, where a short one is asked for", () => {
    expect(readSystem("--short").durationMs).toBeLessThanOrEqual(100_000);
  });

  test.for<readonly [string[], RegExp]>([
    [["--minutes", "soon"], /^--minutes must be a positive number, not soon$/],
    [["--minutes", "-1"], /--minutes/],
    [["--short", "--minutes", "3"], /^--short and --minutes are two answers to one question: give one of them.$/],
    [["--clients", "1"], /^--clients is a whole number from 2 to 64, not 1$/],
    [["--clients", "2.5"], /^--clients is a whole number/],
    [["--svg", "/no/such/folder/run.svg"], /^--svg .*run.svg: there is no folder .*folder$/],
    [["--loud"], /Unknown option '--loud'/],
    [["now"], /Unexpected argument 'now'/],
  ])("refuses %j", ([args, sentence]) => {
    expect(() => readSystem(...args)).toThrow(sentence);
  });
});

describe("a run over Patroni", () => {
  test("has each fault three times, or once where a short one is asked for", () => {
    expect(readHa()).toMatchObject({ isControl: false, clients: 6, rounds: 3 });
    expect(readHa("--short", "--control")).toMatchObject({ isControl: true, rounds: 1 });
  });

  test.for<readonly [string[], RegExp]>([
    [["--rounds", "0"], /^--rounds must be a positive number, not 0$/],
    [["--rounds", "1.5"], /^--rounds is a whole number from 1 to 1000, not 1.5$/],
    [["--short", "--rounds", "2"], /^--short and --rounds are two answers to one question: give one of them.$/],
    [["--minutes", "2"], /Unknown option '--minutes'/],
  ])("refuses %j", ([args, sentence]) => {
    expect(() => readHa(...args)).toThrow(sentence);
  });
});

describe("a run over Citus", () => {
  test("has each fault three times, or once where a short one is asked for", () => {
    expect(readCitus()).toMatchObject({ isControl: false, clients: 6, rounds: 3 });
    expect(readCitus("--short", "--clients", "8")).toMatchObject({ clients: 8, rounds: 1 });
    expect(() => readCitus("--short", "--rounds", "2")).toThrow(/two answers to one question/);
    expect(() => readCitus("--control")).toThrow(/Unknown option '--control'/);
  });
});

describe("a run of the lock alone", () => {
  test("short ones are bounded to well below 45 seconds", () => {
    expect(readLock("--short").limitMs).toBeLessThanOrEqual(30_000);
  });

  test("without options 16 processes take 1000 leases each", () => {
    expect(readLock()).toMatchObject({
      processes: 16,
      leases: 1_000,
      limitMs: 30 * 60_000,
      appendfsync: "always",
      isControl: false,
      hasFleets: false,
    });
    expect(readLock("--fleets", "--short")).toMatchObject({ hasFleets: true, leases: 60 });
  });

  test.for<readonly [string[], RegExp]>([
    [["--processes", "0"], /^--processes must be a positive number, not 0$/],
    [["--appendfsync", "never"], /^--appendfsync is one of always, everysec, no, not never$/],
  ])("refuses %j", ([args, sentence]) => {
    expect(() => readLock(...args)).toThrow(sentence);
  });
});

describe("a soak", () => {
  test("without options is half an hour of four clients, and the clock is the seed", () => {
    expect(readSoak()).toMatchObject({ minutes: 30, perSecond: 100, clients: 4, leaks: [], svg: undefined, json: undefined });
    expect(Number.parseInt(readSoak().seed, 36)).toBeCloseTo(Date.now(), -5);
  });

  test("what makes no sense is refused with a sentence", () => {
    expect(() => readSoak("--minutes", "0")).toThrow("--minutes must be a positive number, not 0");
    expect(() => readSoak("--rate", "fast")).toThrow("--rate must be a positive number, not fast");
    expect(() => readSoak("--clients", "1")).toThrow("--clients is a whole number from 2 to 64, not 1");
    expect(() => readSoak("--leak", "memory,money")).toThrow("--leak is one of memory, timers, listeners, files, not money");
    expect(() => readSoak("--nonsense")).toThrow();
  });
});
