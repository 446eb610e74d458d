// On what a run was made: the machine, how busy it was, and the versions of all that took part.
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
  return { node: process.versions.node, ...Object.fromEntries(packages.map((name) => [name.replace(/4$/, " 4"), versionOf(name)])) };
}

function versionOf(name: string): string {
  // Not every package exports its package.json: it is looked for above the entry.
  for (let folder = require.resolve(name); folder.includes("node_modules"); folder = folder.slice(0, folder.lastIndexOf("/"))) {
    try {
      return (require(`${folder}/package.json`) as { readonly version?: string }).version ?? "unknown";
    } catch {
      // A folder between the entry and the root of its package.
    }
  }
  return "unknown";
}
