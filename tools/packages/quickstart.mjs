// "In your project" of README.md, as a stranger types it in an empty folder: its commands in their
// order, its program, and the answer that it promises. The packed files are those of this run. Where
// another program has a port of it, all ports are moved.
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startChild } from "../../packages/testkit/dist/index.js";
import { inRoot, Refusal, succeed } from "../run.mjs";

const READY_WITHIN_MS = 180_000;
/** Of the gateway, its probes, the five nodes and Postgres. */
const PORTS = [8080, 8081, 7001, 7002, 7003, 7004, 7005, 7432];
/** Where the README packs to. */
const PACKED = "/tmp/palisade/";

/** @param {{ cwd: string, env: Record<string, string | undefined>, packed: string }} place @returns {Promise<string>} */
export async function quickstartIn({ cwd, env, packed }) {
  const [, section = ""] = readFileSync(inRoot("README.md"), "utf8").split("\n## In your project\n");
  const [, shell = "", program = "", answer = ""] = /```sh\n(.*?)```.*?```js\n(.*?)```.*?```\n(.*?)```/s.exec(section) ?? [];
  const [install = "", start = ""] = shell.replaceAll(PACKED, `${packed}/`).trim().split("\n");
  const offset = await freeOffset();
  const ports = offset === 0 ? [] : ["--port", 8080 + offset, "--redis-port", 7001 + offset, "--postgres-port", 7432 + offset].map(String);
  writeFileSync(
    join(cwd, "first.mjs"),
    program.replaceAll(/\b(?:700[1-5]|8080)\b/g, (port) => String(Number(port) + offset)),
  );
  const began = performance.now();
  await succeed(install.split(" "), { cwd, env });
  const [command = "", ...args] = start.split(" ");
  const stack = startChild({ command, args: [...args, ...ports], cwd, env, name: start });
  try {
    await stack.says(/^Ready after /, READY_WITHIN_MS);
    const said = await succeed([process.execPath, "first.mjs"], { cwd, env });
    if (!new RegExp(`^${answer.trim().replaceAll(/\d{6,}/g, "\\d+")}$`).test(said))
      throw new Refusal(`first.mjs said:\n${said}\nand README.md promises:\n${answer}`);
  } finally {
    await ctrlC(stack.pid);
  }
  return `"In your project" of README.md, in ${((performance.now() - began) / 1_000).toFixed(1)} s${offset === 0 ? "" : `, ports moved by ${offset}`}`;
}

/** Reaches npx and the program, as in a terminal: npx alone would end and leave the program behind. @param {number} group */
async function ctrlC(group) {
  for (let signal = /** @type {NodeJS.Signals | 0} */ ("SIGINT"); ; signal = 0) {
    try {
      process.kill(-group, signal);
    } catch {
      return; // Nobody is left.
    }
    await sleep(50);
  }
}

/** @returns {Promise<number>} 0 where nothing else listens on the README's ports */
async function freeOffset() {
  for (const offset of [0, 10_000, 20_000])
    if ((await Promise.all(PORTS.map((port) => isFree(port + offset)))).every(Boolean)) return offset;
  throw new Refusal("other programs listen on the ports of README.md, and 10 000 and 20 000 above them.");
}

/** @param {number} port @returns {Promise<boolean>} */
function isFree(port) {
  return new Promise((resolve) => {
    const server = createServer().once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
