// The first screen of README.md, as a stranger types it in an empty folder: its commands in their
// order, its program, and the answer that it promises. Where another program has a port of it, all
// of them are moved.
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { inRoot } from "../go/checkout.mjs";
import { run } from "../go/child.mjs";
import { Refusal } from "../go/refusal.mjs";

const READY_WITHIN_MS = 180_000;
/** Of the gateway, its probes, the five nodes and Postgres. */
const PORTS = [8080, 8081, 7001, 7002, 7003, 7004, 7005, 7432];

/** @param {{ folder: string, env: Record<string, string | undefined> }} setting @returns {Promise<string>} */
export async function quickstartIn({ folder, env }) {
  const screen = firstScreen(readFileSync(inRoot("README.md"), "utf8"));
  const offset = await freeOffset();
  const { install, start, program, answer } = offset === 0 ? screen : moved(screen, offset);
  const began = performance.now();
  const after = () => `${((performance.now() - began) / 1_000).toFixed(1)} s`;
  const transcript = [`$ ${install}`, await must(install, { folder, env }), `  (${after()})`, `$ ${start} &`];
  writeFileSync(join(folder, "first.mjs"), program);
  const stack = startStack(start, { folder, env });
  try {
    transcript.push(await stack.ready, `  (${after()})`, "$ node first.mjs");
    const said = await must("node first.mjs", { folder, env });
    transcript.push(said, `  (${after()})`);
    const expected = new RegExp(`^${answer.replaceAll(/\d{6,}/g, "\\d+")}$`);
    if (!expected.test(said)) throw new Refusal(`first.mjs said:\n${said}\nand README.md promises:\n${answer}`);
  } finally {
    await stack.end();
  }
  const seconds = after();
  if (process.env.PALISADE_TRANSCRIPT) writeFileSync(process.env.PALISADE_TRANSCRIPT, `${transcript.join("\n")}\n`);
  return `README.md's first screen, in ${seconds}${offset === 0 ? "" : `, its ports moved by ${offset}`}`;
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

/** @param {ReturnType<typeof firstScreen>} screen @param {number} offset */
function moved(screen, offset) {
  const ports = `--port ${8080 + offset} --redis-port ${7001 + offset} --postgres-port ${7432 + offset}`;
  const program = screen.program.replaceAll(/\b(?:700[1-5]|8080)\b/g, (port) => String(Number(port) + offset));
  return { ...screen, start: `${screen.start} ${ports}`, program };
}

/** @param {string} readme */
function firstScreen(readme) {
  const blocks = [...readme.matchAll(/```(\w*)\n(.*?)```/gs)].slice(0, 3).map(([, language = "", text = ""]) => ({ language, text }));
  const [shell, program, answer] = blocks;
  if (blocks.map(({ language }) => language).join() !== "sh,js,")
    throw new Refusal("README.md does not begin with commands, a program and its answer.");
  const [install = "", start = ""] = (shell?.text ?? "").trim().split("\n");
  return { install, start, program: program?.text ?? "", answer: (answer?.text ?? "").trim() };
}

/** @param {string} command @param {{ folder: string, env: Record<string, string | undefined> }} where */
async function must(command, { folder, env }) {
  const { code, output } = await run(command.split(" "), { output: "kept", cwd: folder, env });
  if (code !== 0) throw new Refusal(`${command} ended with ${code}:\n${output}`);
  return output.trim();
}

/** @param {string} command @param {{ folder: string, env: Record<string, string | undefined> }} where */
function startStack(command, { folder, env }) {
  const [file = "", ...args] = command.split(" ");
  const child = spawn(file, args, { cwd: folder, env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const ready = new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Refusal(`${command} is not ready in time:\n${said}`)), READY_WITHIN_MS);
    const see = (/** @type {Buffer} */ chunk) => {
      said += chunk;
      if (!/^Ready after .*$/m.test(said)) return;
      clearTimeout(late);
      resolve(said.split(/^Try it/m)[0]?.trim() ?? "");
    };
    for (const stream of [child.stdout, child.stderr]) stream.on("data", see);
    void ended.then((code) => {
      clearTimeout(late);
      reject(new Refusal(`${command} ended with ${code}:\n${said}`));
    });
  });
  return {
    ready,
    // npx passes the signal on to the program.
    end: async () => {
      if (child.exitCode === null && child.pid !== undefined) process.kill(-child.pid, "SIGTERM");
      await ended;
    },
  };
}
