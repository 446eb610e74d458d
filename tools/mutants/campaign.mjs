// A whole run: two copies of the tree, a baseline without any mutant that must be green, then the mutants, two at a time. Decides the order of things and when a
// short run has had its time. Leaves nothing behind, however it ends.
import { chmodSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Refusal } from "../go/refusal.mjs";
import { suiteOf, testsOf } from "./mutant.mjs";
import { runTests } from "./test-run.mjs";
import { tryMutant } from "./trial.mjs";
import { Workshop } from "./workshop.mjs";

const atOnce = 2;
/** A short run begins no further mutant after so long. Each copy tries one in any case: a machine that was slow with the baseline has not failed. */
const shortMs = 75_000;

/**
 * @typedef {import("./mutant.mjs").Mutant} Mutant
 * @typedef {object} Campaign
 * @property {readonly Mutant[]} mutants
 * @property {boolean} short
 * @property {(line: string) => void} say
 * @property {(tried: import("./trial.mjs").Tried) => void} onTried
 */

/** The mutants that were tried, in the order in which they were asked for. @param {Campaign} campaign */
export async function hold(campaign) {
  const { mutants, short, say, onTried } = campaign;
  const startedAt = performance.now();
  const folder = mkdtempSync(join(realpathSync(tmpdir()), "palisade-mutants-"));
  chmodSync(folder, 0o755); // Servers that run under an account of their own must get through.
  try {
    const workshops = Array.from({ length: Math.min(atOnce, mutants.length) }, (_, index) => new Workshop(join(folder, String(index))));
    await baseline(workshops, filtersOf(campaign));
    say(`without a mutant all tests are green (${seconds(startedAt)})`);
    const queue = [...mutants];
    /** @type {Map<string, import("./trial.mjs").Tried>} */
    const tried = new Map();
    const work = async (/** @type {Workshop} */ workshop) => {
      for (let mutant = queue.shift(), first = true; mutant !== undefined; mutant = queue.shift(), first = false) {
        if (short && !first && performance.now() - startedAt > shortMs) return;
        const outcome = await tryMutant(workshop, mutant);
        tried.set(mutant.name, outcome);
        onTried(outcome);
      }
    };
    await all(workshops.map(work));
    return mutants.flatMap(({ name }) => tried.get(name) ?? []);
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }
}

/** A short run rests on the tests having been green elsewhere, and looks only at the files it needs. @param {Campaign} campaign */
function filtersOf({ mutants, short }) {
  return [...new Set(mutants.flatMap((mutant) => (short || mutants.length <= atOnce ? testsOf(mutant) : [suiteOf(mutant)])))];
}

/** Half of the files in each copy, at the same time, as it will be with the mutants. @param {readonly Workshop[]} workshops @param {readonly string[]} filters */
async function baseline(workshops, filters) {
  // Fewer files cannot be halved.
  const shards = filters.length > workshops.length ? workshops.length : 1;
  await all(
    workshops.map(async (workshop, index) => {
      const built = await workshop.build();
      if (!built.ok)
        throw new Refusal(`without any mutant the sources do not compile, so nothing can be said of mutants.\n${built.output}`);
      if (index >= shards) return;
      const finding = await runTests(workshop.folder, filters, shards === 1 ? undefined : `${index + 1}/${shards}`);
      if (finding.kind === "green") return;
      const what = finding.kind === "red" ? `${finding.file}: ${finding.title}\n${finding.message}` : finding.why;
      throw new Refusal(`without any mutant the tests are not green, so nothing can be said of mutants: ${what}`);
    }),
  );
}

/** Waits for all of them, also when one fails: whoever still works would otherwise lose its folder. @param {readonly Promise<void>[]} works */
async function all(works) {
  const ended = await Promise.allSettled(works);
  for (const end of ended) if (end.status === "rejected") throw end.reason;
}

/** @param {number} startedAt */
function seconds(startedAt) {
  return `${((performance.now() - startedAt) / 1_000).toFixed(0)} s`;
}
