// The command lines of the fault runs: what may be asked for, and the answers to what makes no sense.
import { expect, test } from "vitest";
import { readValues } from "../../src/command.js";
import type { FaultProfile } from "../../src/runs/fault-run.js";
import { citusClusterFaults, haFaults, lockFaults, systemFaults } from "../../src/runs/profiles.js";

const commands = { system: systemFaults, ha: haFaults, citus: citusClusterFaults, lock: lockFaults };
const reading = (name: keyof typeof commands, line: string): FaultProfile => {
  const { profile, usage } = commands[name];
  return profile({ seed: "s", isControl: false }, readValues(line === "" ? [] : line.split(" "), usage));
};

test.for<readonly [keyof typeof commands, string, object]>([
  ["system", "", { plan: { durationMs: 300_000, clients: 10, nodes: 5 } }],
  ["system", "--minutes 0.5 --seed s --control --clients 12", { plan: { durationMs: 30_000, clients: 12 } }],
  ["system", "--short --members", { plan: { durationMs: 90_000, nodes: 7 }, founders: 5 }],
  ["ha", "--short --control", { rounds: 1, plan: { clients: 6 } }],
  ["citus", "--clients 8", { rounds: 3, plan: { clients: 8 } }],
  ["lock", "--short", { plan: { clients: 16, durationMs: 27_000 } }],
])("%s %s", ([name, line, asked]) => {
  expect(reading(name, line)).toMatchObject(asked);
});

test.for<readonly [keyof typeof commands, string, RegExp]>([
  ["system", "--minutes=-1", /^--minutes takes a number from 0.01 to 10000, not "-1".$/],
  ["system", "--short --minutes 3", /^--short and --minutes are two answers to one question: give one of them.$/],
  ["system", "--clients 1", /^--clients takes a whole number from 2 to 64, not "1".$/],
  ["system", "now", /Unexpected argument 'now'/],
  ["ha", "--minutes 2", /Unknown option '--minutes'/],
  ["citus", "--control", /Unknown option '--control'/],
  ["lock", "--processes 1.5", /^--processes takes a whole number from 1 to 1000, not "1.5".$/],
])("%s %s is refused", ([name, line, sentence]) => {
  expect(() => reading(name, line)).toThrow(sentence);
});
