// `npm run bench [-- quick | usual | all | part…]`: every figure that the documentation claims,
// measured side by side in one run, and the page that shows them.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { cpus, loadavg, release, totalmem, type } from "node:os";
import { Worker } from "node:worker_threads";
import { Closers } from "@palisade/testkit";
import { type Asked, readCommandLine, usage } from "./command-line.js";
import { gatewayParts } from "./gateway/parts.js";
import { handoverParts } from "./lock/handover.js";
import { idleWaitersPart } from "./lock/idle-waiters.js";
import { faultyNodesPart, uncontendedParts } from "./lock/uncontended.js";
import { waitingPart } from "./lock/waiting.js";
import { compare } from "./measure/comparison.js";
import { processorTimes } from "./measure/cpu.js";
import { type Context, countFor, effortFor, type Part, progressOn } from "./measure/part.js";
import { asText, type Machine, parseReport, type Report, type Result, reportText } from "./measure/results.js";
import { pageOf } from "./page.js";

const parts: readonly Part[] = [...uncontendedParts, faultyNodesPart, ...handoverParts, waitingPart, idleWaitersPart, ...gatewayParts];
const docs = new URL("../../../docs/", import.meta.url);

async function measure(asked: Asked): Promise<Report> {
  const machine = thisMachine();
  const startedAt = new Date();
  console.log(`Node ${process.version}, ${process.platform} ${process.arch}, load average ${machine.loadAverage.join(", ")}.`);
  console.log("Compare figures only within one run.");
  const results: Result[] = [];
  const servers: Record<string, string> = {};
  await using closers = new Closers();
  const progress = progressOn(process.stderr);
  const context: Context = {
    scope: asked.scope,
    beside: asked.beside,
    progress,
    effort: effortFor(asked.scope, asked),
    count: countFor(asked),
    publish(result) {
      progress.end();
      results.push(result);
      console.log(asText(result));
    },
    async compare(plan) {
      this.publish(await compare(plan, (text) => progress.step(text)));
    },
    note(server, version) {
      servers[server] = version;
    },
    use: (one) => closers.use(one),
  };
  if (asked.busy) {
    const spinning = new Worker("for (;;);", { eval: true });
    closers.use({ [Symbol.asyncDispose]: async () => void (await spinning.terminate()) });
  }
  for (const part of parts) if (asked.parts.includes(part.name)) await part.run(context);
  return {
    format: 1,
    scope: asked.scope,
    leftOut: asked.leftOut,
    machine,
    results,
    versions: { ...versionsHere(), ...servers },
    command: commandLine(process.argv.slice(2)),
    startedAt: startedAt.toISOString(),
    tookSeconds: Math.round((Date.now() - startedAt.getTime()) / 1_000),
  };
}

const manifest = createRequire(import.meta.url)("@palisade/bench/package.json") as Record<string, Readonly<Record<string, string>>>;

function thisMachine(): Machine {
  const processors = cpus();
  return {
    system: `${type()} ${release()}`,
    processor: processors[0]?.model ?? "unknown",
    cores: processors.length,
    memoryGb: Math.round(totalmem() / 2 ** 30),
    loadAverage: loadavg().map((value) => Number(value.toFixed(2))),
    processorTimes,
  };
}

/** Of Node and the packages, which are pinned; the servers tell theirs when they have been started. */
function versionsHere(): Readonly<Record<string, string>> {
  const pinned = Object.entries({ ...manifest.dependencies, ...manifest.devDependencies });
  const peers = pinned
    .filter(([name]) => !/^@(palisade|types)\//.test(name))
    .map(([name, version]) => [name, version.replace(/^npm:.*@/, "")]);
  return { palisade: commit(), node: process.versions.node, ...Object.fromEntries(peers) };
}

/** Of this checkout, where it is one. */
function commit(): string {
  try {
    const cwd = new URL(".", import.meta.url);
    return execFileSync("git", ["describe", "--always", "--dirty"], { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  } catch {
    return "unknown";
  }
}

/** Without the paths of this machine. */
function commandLine(args: readonly string[]): string {
  const shown = args.filter((arg, i) => !arg.startsWith("--json") && args[i - 1] !== "--json");
  return ["npm run bench", ...(shown.length === 0 ? [] : ["--"]), ...shown.map((arg) => (arg.includes("/") ? "DIR" : arg))].join(" ");
}

async function main(): Promise<void> {
  let asked: Asked | undefined;
  try {
    asked = readCommandLine(process.argv.slice(2), parts);
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${usage(parts)}`);
    process.exitCode = 2;
    return;
  }
  if (asked === undefined) return console.log(usage(parts));
  const text = asked.from === undefined ? reportText(await measure(asked)) : readFileSync(asked.from, "utf8");
  if (asked.from !== undefined) for (const result of parseReport(text).results) console.log(asText(result));
  if (asked.json !== undefined) writeFileSync(asked.json, text);
  if (!asked.write) return;
  for (const [name, content] of Object.entries({ "performance.md": pageOf(text), "performance.json": text }))
    writeFileSync(new URL(name, docs), content);
  console.log("\nwritten: docs/performance.md");
}

await main();
