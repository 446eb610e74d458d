// Five machines at the same minute: one runs the command. A machine that was paused while it ran
// it does not overwrite what the next one stored.
import assert from "node:assert/strict";
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { client, folderOf, locker, refusesStale, run, start, until } from "./run-example.mjs";

const example = "cron-once";
const once = (day, program, env) => start(example, ["once.js", "report", day, process.execPath, "-e", program], { env });

const five = await Promise.all(Array.from({ length: 5 }, () => once("monday", "console.log(6 * 7)").ended));
assert.deepEqual([...new Set(five.map(({ code }) => code))], [0]);
assert.equal(five.filter(({ output }) => output === "done\n").length, 1);
assert.match(await run(example, ["once.js", "report", "monday", process.execPath, "-e", ""]), /^done already/);
assert.equal((await client.get("jobs/report/monday")).value.output, "42\n");

const at = (file) => join(folderOf(example), file);
for (const file of ["started", "go"]) rmSync(at(file), { force: true });
const untilTold = `
  require("fs").writeFileSync("started", "");
  const timer = setInterval(() => require("fs").existsSync("go") && (clearInterval(timer), console.log("paused")), 20);`;
const first = once("tuesday", untilTold, { TTL_MS: "1000" });
await until(() => existsSync(at("started")));
first.child.kill("SIGSTOP");
const { token } = await client.fence("jobs/report/tuesday");
await until(async () => (await once("tuesday", "console.log('second')").ended).output === "done\n");
writeFileSync(at("go"), "");
first.child.kill("SIGCONT");
const { code, output } = await first.ended;
assert.equal(code, 1, output);
assert.match(output, /^not stored/m);
await refusesStale("jobs/report/tuesday", token);
assert.equal((await client.get("jobs/report/tuesday")).value.output, "second\n");
await locker.close();
console.log("one of five ran it; a paused run is not stored");
