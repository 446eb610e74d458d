// The command lines of the fault runs: what may be asked for, and the answers to what makes no sense.
import { expect, test } from "vitest";
import { readValues } from "../../src/command.js";
import { citusCommand, haCommand, lockCommand, systemCommand } from "../../src/runs/profiles.js";

const commands = { system: systemCommand, ha: haCommand, citus: citusCommand, lock: lockCommand };
const reading = (name: keyof typeof commands, line: string): unknown => {
  const { read, usage } = commands[name];
  return read(readValues(line === "" ? [] : line.split(" "), usage));
};

test.for<readonly [keyof typeof commands, string, object]>([
  ["system", "", { isControl: false, clients: 10, durationMs: 300_000, json: undefined, svg: undefined }],
  [
    "system",
    "--minutes 0.5 --seed s --control --clients 12 --svg run.svg",
    { isControl: true, clients: 12, durationMs: 30_000, seed: "s" },
  ],
  ["system", "--short --members", { durationMs: 90_000, changesMembers: true }],
  ["ha", "", { isControl: false, clients: 6, rounds: 3 }],
  ["ha", "--short --control", { isControl: true, rounds: 1 }],
  ["citus", "--short --clients 8", { clients: 8, rounds: 1 }],
  ["lock", "", { processes: 16, leases: 1_000, limitMs: 1_800_000, appendfsync: "always", isControl: false }],
  ["lock", "--short", { leases: 60, limitMs: 27_000 }],
])("%s %s", ([name, line, asked]) => {
  expect(reading(name, line)).toMatchObject(asked);
});

test("the clock is the seed where none is given", () => {
  expect(Number.parseInt((reading("system", "") as { readonly seed: string }).seed, 36)).toBeCloseTo(Date.now(), -5);
});

test.for<readonly [keyof typeof commands, string, RegExp]>([
  ["system", "--minutes soon", /^--minutes must be a positive number, not soon$/],
  ["system", "--minutes=-1", /--minutes/],
  ["system", "--short --minutes 3", /^--short and --minutes are two answers to one question: give one of them.$/],
  ["system", "--clients 1", /^--clients is a whole number from 2 to 64, not 1$/],
  ["system", "--svg /no/such/folder/run.svg", /^--svg .*run.svg: there is no folder .*folder$/],
  ["system", "--loud", /Unknown option '--loud'/],
  ["system", "now", /Unexpected argument 'now'/],
  ["ha", "--rounds 0", /^--rounds must be a positive number, not 0$/],
  ["ha", "--rounds 1.5", /^--rounds is a whole number from 1 to 1000, not 1.5$/],
  ["ha", "--minutes 2", /Unknown option '--minutes'/],
  ["citus", "--short --rounds 2", /two answers to one question/],
  ["citus", "--control", /Unknown option '--control'/],
  ["lock", "--appendfsync never", /^--appendfsync is one of always, everysec, no, not never$/],
])("%s %s is refused", ([name, line, sentence]) => {
  expect(() => reading(name, line)).toThrow(sentence);
});
