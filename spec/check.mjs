// Checks the specifications: node spec/check.mjs [--all] [--only <part of a name>] [--json]
// [--write] [--trace]. The exit code is 0 if every model has the verdict and the number of states that
// models.md names.
import { readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { Worker } from "node:worker_threads";
import { allModels, tablePath } from "./checker/models.mjs";

const { values: asked } = parseArgs({
  options: {
    all: { type: "boolean" },
    only: { type: "string" },
    json: { type: "boolean" },
    write: { type: "boolean" },
    trace: { type: "boolean" },
  },
});
const models = allModels().filter(({ name, onDemand }) => (asked.all || asked.only || !onDemand) && name.includes(asked.only ?? ""));

/** @type {import("./checker/worker.mjs").Found[]} */
const findings = [];
await checkAll(models, (found) => {
  findings.push(found);
  if (!asked.json) report(found);
});
if (asked.write) keep();
if (asked.json) console.log(JSON.stringify(findings));
else
  console.log(
    `${findings.length} models, ${sum(({ states }) => states)} states, ${sum(({ seconds }) => seconds).toFixed(1)} s of processor time`,
  );
if (findings.length === 0 || !findings.every(asExpected)) process.exitCode = 1;

/** @param {import("./checker/worker.mjs").Found} found */
function asExpected({ name, verdict, states }) {
  const model = models.find((one) => one.name === name);
  return verdict === model?.expected && (asked.write || states === model.states);
}

/** @param {import("./checker/worker.mjs").Found} found */
function report(found) {
  const { name, verdict, states, seconds, trace } = found;
  console.log(
    `${asExpected(found) ? "ok  " : "FAIL"} ${name.padEnd(44)} ${verdict.padEnd(28)} ${String(states).padStart(8)} states ${seconds.toFixed(1).padStart(6)} s`,
  );
  if (asked.trace || !asExpected(found)) for (const line of trace) console.log(`     ${line}`);
}

/** @param {(found: import("./checker/worker.mjs").Found) => number} of */
function sum(of) {
  return findings.reduce((total, found) => total + of(found), 0);
}

/** Writes down what was found: the numbers of states in the table of models. */
function keep() {
  for (const { name, states } of findings) {
    const [specification = "", variant = ""] = name.split("/");
    const row = new RegExp(`(^## ${specification}\\n[\\s\\S]*?^\\| ${variant} .* \\| )[\\d ]+( \\| \\S+ \\|$)`, "m");
    const count = states.toLocaleString("en").replaceAll(",", " ");
    writeFileSync(tablePath, readFileSync(tablePath, "utf8").replace(row, `$1${count}$2`));
  }
}

// Shares models among threads, the largest first, so that none is left to run alone at the end.

/**
 * Resolves when all are done; rejects when a thread fails, which ends the others.
 * @param {readonly import("./checker/models.mjs").Model[]} models
 * @param {(found: import("./checker/worker.mjs").Found) => void} onFound
 */
async function checkAll(models, onFound) {
  const queue = [...models].sort((a, b) => b.states - a.states);
  const workers = Array.from(
    { length: Math.min(availableParallelism(), queue.length) },
    () => new Worker(new URL("checker/worker.mjs", import.meta.url)),
  );
  try {
    await Promise.all(workers.map((worker) => drain(worker, queue, onFound)));
  } finally {
    await Promise.all(workers.map((worker) => worker.terminate()));
  }
}

/**
 * @param {Worker} worker
 * @param {import("./checker/models.mjs").Model[]} queue
 * @param {(found: import("./checker/worker.mjs").Found) => void} onFound
 * @returns {Promise<void>}
 */
function drain(worker, queue, onFound) {
  return new Promise((resolve, reject) => {
    const next = () => {
      const model = queue.shift();
      if (model === undefined) resolve();
      else worker.postMessage(model);
    };
    worker.on("error", reject);
    worker.on("message", (found) => {
      onFound(found);
      next();
    });
    next();
  });
}
