// "Try it" of README.md, as a stranger types it in an empty folder: its commands in their order, its
// programs, and the answers that it promises. The packed files are those of this run. Where another
// program has a port of it, all ports are moved.
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { PostgresDatabases, startChild } from "../../packages/testkit/dist/index.js";
import { inRoot, Refusal, succeed } from "../run.mjs";

const READY_WITHIN_MS = 180_000;
/** Of the gateway, its probes, the five nodes and Postgres. */
const PORTS = [8080, 8081, 7001, 7002, 7003, 7004, 7005, 7432];
/** Where the README packs to. */
const PACKED = "/tmp/palisade/";

/** @typedef {{ cwd: string, env: Record<string, string | undefined>, packed: string }} Place */

/** @param {Place} place @returns {Promise<string>} */
export async function quickstartIn({ cwd, env, packed }) {
  const offset = await freeOffset();
  const moved = (/** @type {string} */ text) => text.replaceAll(/\b(?:700[1-5]|7432|8080)\b/g, (port) => String(Number(port) + offset));
  const ports = offset === 0 ? "" : ` --port ${8080 + offset} --redis-port ${7001 + offset} --postgres-port ${7432 + offset}`;
  const readme = readFileSync(inRoot("README.md"), "utf8");
  const programs = programsOf(readme);
  for (const [name, program] of programs) writeFileSync(join(cwd, name), moved(program));
  const section = readme.split("\n## Try it\n")[1] ?? "";
  const lines = [...section.matchAll(/```sh\n(.*?)```/gs)].flatMap(([, block = ""]) => block.trim().split("\n"));
  const began = performance.now();
  const stacks = [];
  const said = [];
  try {
    for (const line of lines) {
      const command = ["sh", "-c", moved(line).replaceAll(PACKED, `${packed}/`)];
      if (!line.endsWith("@palisade/dev")) {
        const output = await succeed(command, { cwd, env });
        if (line.includes("tsx ")) said.push(output);
        continue;
      }
      const stack = startChild({ command: "npx", args: `@palisade/dev${ports}`.split(" "), cwd, env, name: line });
      stacks.push(stack);
      await stack.says(/^Ready after /, READY_WITHIN_MS);
    }
    const promised = "a balance of 10\nfencing_token_stale|a cart of 1\nfencing_token_stale";
    if (said.join("|") !== promised) throw new Refusal(`the programs of README.md said:\n${said.join("\n")}`);
  } finally {
    for (const { pid } of stacks) await ctrlC(pid);
  }
  return `"Try it" of README.md, in ${seconds(began)} s${offset === 0 ? "" : `, ports moved by ${offset}`}`;
}

/**
 * From an empty folder to a row of one's own table that a stale holder cannot write, without a
 * gateway: the first program of README.md, strictly compiled. @param {Place} place @returns {Promise<string>}
 */
export async function ownTableIn({ cwd, env }) {
  const database = await new PostgresDatabases(env.DATABASE_URL ?? "").createDatabase();
  try {
    const [[name = "", program = ""] = []] = programsOf(readFileSync(inRoot("README.md"), "utf8"));
    const place = { cwd, env: { ...env, DATABASE_URL: database.url } };
    const nodes = JSON.stringify(env.REDIS_URLS?.split(","));
    const here = program.replace(/\[7001.*`\)/, nodes).replace("postgres://postgres@127.0.0.1:7432/postgres", database.url);
    const began = performance.now();
    await succeed(["npm", "install", "@palisade/lock", "@palisade/guard", "pg", "@types/pg", "@types/node@20", "typescript@5"], place);
    const installed = seconds(began);
    await succeed(["npx", "@palisade/guard", "migrate"], place);
    writeFileSync(join(cwd, name), here);
    const strict = "--strict --module nodenext --target es2022 --lib es2022,esnext.disposable --types node";
    await succeed(["npx", "tsc", ...strict.split(" "), name], place);
    const said = await succeed([process.execPath, name.replace("mts", "mjs")], place);
    if (said !== "a balance of 10\nfencing_token_stale") throw new Refusal(`${name} said:\n${said}`);
    return `an empty folder, ${installed} s of npm install, and a fenced row after ${seconds(began)} s`;
  } finally {
    await database.drop();
  }
}

/** By the names that the README gives them. @param {string} readme @returns {[name: string, program: string][]} */
function programsOf(readme) {
  return [...readme.matchAll(/\(`(\w+\.mts)`\).*?```ts\n(.*?)```/gs)].map(([, name = "", program = ""]) => [name, program]);
}

/** @param {number} began */
function seconds(began) {
  return ((performance.now() - began) / 1_000).toFixed(1);
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
