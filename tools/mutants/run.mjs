// A whole run: two copies of the tree, a baseline without any mutant that must be green, then the
// mutants, two at a time. Leaves nothing behind, however it ends.
import { chmodSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Refusal } from "../go/refusal.mjs";
import { suiteOf, testsOf } from "./mutant.mjs";
import { runTests } from "./test-run.mjs";
import { TreeCopy } from "./tree-copy.mjs";
import { judge } from "./verdict.mjs";

const AT_ONCE = 2;
/**
 * A short run begins no further mutant after so long. Each copy tries one in any case: a machine
 * that was slow with the baseline has not failed.
 */
const SHORT_MS = 75_000;

/**
 * @typedef {import("./mutant.mjs").Mutant} Mutant
 * @typedef {import("./verdict.mjs").Outcome} Outcome
 * @typedef {object} Run
 * @property {readonly Mutant[]} mutants
 * @property {boolean} short
 * @property {(line: string) => void} say
 * @property {(outcome: Outcome) => void} onOutcome
 */

/** The mutants that were tried, in the order in which they were asked for. @param {Run} request */
export async function runMutants(request) {
  const { mutants, short, say, onOutcome } = request;
  const startedAt = performance.now();
  const folder = mkdtempSync(join(realpathSync(tmpdir()), "palisade-mutants-"));
  chmodSync(folder, 0o755); // Servers that run under an account of their own must get through.
  try {
    const copies = Array.from({ length: Math.min(AT_ONCE, mutants.length) }, (_, index) => new TreeCopy(join(folder, String(index))));
    await baseline(copies, filtersOf(request));
    say(`without a mutant all tests are green (${seconds(startedAt)})`);
    const queue = [...mutants];
    /** @type {Map<string, Outcome>} */
    const outcomes = new Map();
    const work = async (/** @type {TreeCopy} */ copy) => {
      for (let mutant = queue.shift(), first = true; mutant !== undefined; mutant = queue.shift(), first = false) {
        if (short && !first && performance.now() - startedAt > SHORT_MS) return;
        const outcome = await judge(copy, mutant);
        outcomes.set(mutant.name, outcome);
        onOutcome(outcome);
      }
    };
    await all(copies.map(work));
    return mutants.flatMap(({ name }) => outcomes.get(name) ?? []);
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }
}

/**
 * A short run rests on the tests having been green elsewhere, and looks only at the files it needs.
 * @param {Run} request
 */
function filtersOf({ mutants, short }) {
  return [...new Set(mutants.flatMap((mutant) => (short || mutants.length <= AT_ONCE ? testsOf(mutant) : [suiteOf(mutant)])))];
}

/**
 * Half of the files in each copy, at the same time, as it will be with the mutants.
 * @param {readonly TreeCopy[]} copies @param {readonly string[]} filters
 */
async function baseline(copies, filters) {
  // Fewer files cannot be halved.
  const shards = filters.length > copies.length ? copies.length : 1;
  await all(
    copies.map(async (copy, index) => {
      const built = await copy.build();
      if (!built.ok)
        throw new Refusal(`without any mutant the sources do not compile, so nothing can be said of mutants.\n${built.output}`);
      if (index >= shards) return;
      const finding = await runTests(copy.folder, filters, shards === 1 ? undefined : `${index + 1}/${shards}`);
      if (finding.kind === "green") return;
      const what = finding.kind === "red" ? `${finding.file}: ${finding.title}\n${finding.message}` : finding.why;
      throw new Refusal(`without any mutant the tests are not green, so nothing can be said of mutants: ${what}`);
    }),
  );
}

/**
 * Waits for all of them, also when one fails: the others still work in the folder that is removed
 * next.
 * @param {readonly Promise<void>[]} works
 */
async function all(works) {
  const ended = await Promise.allSettled(works);
  for (const end of ended) if (end.status === "rejected") throw end.reason;
}

/** @param {number} startedAt */
function seconds(startedAt) {
  return `${((performance.now() - startedAt) / 1_000).toFixed(0)} s`;
}
