// On what a run was made: the machine, how busy it was, and the versions of all that took part.
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { cpus, loadavg, release, totalmem, type } from "node:os";
import { processorTimes } from "./cpu.js";
import type { Machine } from "./results.js";

const require = createRequire(import.meta.url);

const packages = [
  "ioredis",
  "redlock",
  "@sesamecare-oss/redlock",
  "redlock4",
  "redlock-universal",
  "redis-semaphore",
  "express",
  "fastify",
  "pg",
];

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

/** Of Node and the packages; the servers tell theirs when they have been started. */
export function versionsHere(): Readonly<Record<string, string>> {
  return {
    palisade: commit(),
    node: process.versions.node,
    ...Object.fromEntries(packages.map((name) => [name, versionOf(name)])),
  };
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

function versionOf(name: string): string {
  // Not every package exports its package.json: it is looked for above the entry.
  for (let folder = require.resolve(name); folder.includes("node_modules"); folder = folder.slice(0, folder.lastIndexOf("/"))) {
    try {
      const { version } = require(`${folder}/package.json`) as { readonly version?: string };
      if (version !== undefined) return version;
    } catch {
      // A folder between the entry and the root of its package.
    }
  }
  return "unknown";
}
