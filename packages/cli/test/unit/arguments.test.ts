// What the program makes of its arguments, before anything is asked.
import { writeFileSync } from "node:fs";
import { scratchFolder } from "@palisade/testkit";
import { expect, test } from "vitest";
import { commands } from "#cli/command-list.js";
import { palisade } from "../support/terminal.js";

const wrong: readonly (readonly [readonly string[], string])[] = [
  [["inspekt", "r"], "is no command; palisade --help"],
  [["inspect"], "inspect needs RESOURCE: palisade inspect RESOURCE"],
  [["inspect", "a", "b"], '"b" is not understood'],
  [["inspect", "a", "--reason", "x"], "inspect has no --reason"],
  [["inspect", "a", "--resaon", "x"], "--resaon"],
  [["issued", "a", "5.5"], '"5.5" is no token'],
  [["issued", "a", "0"], '"0" is no token'],
  [["ls", "--limit", "many"], "--limit is a whole number from 1 to 100000"],
  [["watch", "--every", "0"], "--every is in seconds"],
  [["watch", "--limit", "5"], "--limit is for a terminal"],
  [["watch", "--json"], "watch has no --json"],
  [["refused", "--since", "x"], "--since is a number of minutes above 0"],
  [["force-release", "a"], "force-release needs --reason"],
  [["raise", "a", "7"], "raise needs --reason"],
  [["inspect", "a", "--timeout", "0"], "--timeout is in seconds"],
  [["inspect", "a", "--env-file", "/nowhere/at-all"], "--env-file /nowhere/at-all cannot be read"],
  [["inspect", "a", "--nodes", "redis://:secret@n1:6379"], "--nodes holds a password"],
  [["completion", "fish"], "bash or zsh"],
];

test("arguments that cannot be right are told so and what to do, with exit code 2", async () => {
  const env = { PALISADE_REDIS_URLS: "redis://127.0.0.1:1", PALISADE_GATEWAY_URL: "http://127.0.0.1:1" };
  for (const [args, said] of wrong) {
    const ran = await palisade(args, { env });
    expect({ args, ...ran }).toEqual({ args, exitCode: 2, output: "", errors: expect.stringContaining(said) });
    expect(ran.errors).not.toContain("secret");
  }
  for (const [command, name] of [
    ["inspect", "PALISADE_REDIS_URLS"],
    ["fence", "PALISADE_GATEWAY_URL"],
  ] as const)
    expect(await palisade([command, "a"])).toMatchObject({ exitCode: 2, errors: expect.stringContaining(`set ${name}`) });
});

test("settings come from a flag, else the environment, else the file", async () => {
  const file = `${scratchFolder("cli")}/env`;
  writeFileSync(file, 'PALISADE_GATEWAY_URL="http://127.0.0.1:3"\n');
  const asked = async (args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
    (await palisade(["fence", "a", "--timeout", "0.2", "--env-file", file, ...args], { env })).errors;
  expect(await asked([])).toContain("127.0.0.1:3");
  expect(await asked([], { PALISADE_GATEWAY_URL: "http://127.0.0.1:2" })).toContain("127.0.0.1:2");
  expect(await asked(["--gateway", "http://127.0.0.1:1"], { PALISADE_GATEWAY_URL: "http://127.0.0.1:2" })).toContain("127.0.0.1:1");
});

test("help of the program and of each command, and the version", async () => {
  const { output } = await palisade(["--help"]);
  expect(output).toContain("Exit codes:");
  expect(await palisade([])).toEqual({ exitCode: 0, output, errors: "" });
  for (const name of Object.keys(commands)) {
    expect(output).toContain(`\n  ${name} `);
    expect(await palisade([name, "--help"])).toMatchObject({ exitCode: 0, output: expect.stringContaining(`palisade ${name}`) });
  }
  expect((await palisade(["--version"])).output).toMatch(/^\d+\.\d+\.\d+\n$/);
});

test("help stands in two columns that every list keeps, and its words go on in the second one", async () => {
  const { output } = await palisade(["--help"], { columns: 60 });
  const [commandsList = "", flagsList = ""] = output.split("\n\n").slice(1);
  const lines = `${commandsList}\n${flagsList}`.split("\n");
  const place = lines[0]?.indexOf("who holds it") ?? 0;
  for (const line of lines) {
    expect(line.slice(place - 2, place)).toBe("  ");
    expect(line[place]).toMatch(/\S/);
    expect(line.length).toBeLessThanOrEqual(60);
  }
  expect(lines.filter((line) => line.startsWith(" ".repeat(place))).length).toBeGreaterThan(5);
});
