// On what a run was made: the machine, how busy it was, and the versions of all that took part.
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { cpus, loadavg, release, totalmem, type } from "node:os";
import { processorTimes } from "./cpu.js";
import type { Machine } from "./results.js";

const manifest = createRequire(import.meta.url)("@palisade/bench/package.json") as Record<string, Readonly<Record<string, string>>>;

export function thisMachine(): Machine {
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
export function versionsHere(): Readonly<Record<string, string>> {
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
