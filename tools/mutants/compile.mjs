// Compiles all mutants without running a test, many at a time: which of them does the compiler
// refuse? One that does not compile says nothing about the tests.
import { chmodSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { Refusal } from "../go/refusal.mjs";
import { DoesNotApply, mutated } from "./mutant.mjs";
import { TreeCopy } from "./tree-copy.mjs";

/** Of one file in one build. Two of a file may be refused together and not apart, so few. */
const OF_ONE_FILE = 4;

/**
 * @typedef {import("./mutant.mjs").Mutant} Mutant
 * @typedef {{ readonly name: string, readonly output: string }} Refused
 */

/**
 * Those that do not compile.
 * @param {readonly Mutant[]} mutants @param {(line: string) => void} say @returns {Promise<readonly Refused[]>}
 */
export async function compileMutants(mutants, say) {
  const folder = mkdtempSync(join(realpathSync(tmpdir()), "palisade-mutants-"));
  chmodSync(folder, 0o755);
  try {
    const copy = new TreeCopy(folder);
    const built = await copy.build();
    if (!built.ok) throw new Refusal(`without any mutant the sources do not compile.\n${built.output}`);
    /** @type {Refused[]} */
    const refused = [];
    let compiled = 0;
    for (let left = mutants.filter(({ file }) => extname(file) === ".ts"); left.length > 0; ) {
      const { now, later } = together(left, OF_ONE_FILE, (file) => copy.read(file));
      // Says which one does not apply, and why.
      for (const mutant of now.length === 0 ? later : []) mutated(mutant, copy.read(mutant.file));
      refused.push(...(await refusedOf(copy, now)));
      compiled += now.length;
      say(`${compiled} of ${compiled + later.length} compiled, ${refused.length} refused`);
      left = later;
    }
    return refused;
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }
}

/**
 * So many of each file that still apply when the others of it are applied, and the rest.
 * @param {readonly Mutant[]} mutants @param {number} ofOneFile @param {(file: string) => string} read
 */
export function together(mutants, ofOneFile, read) {
  /** @type {Map<string, { text: string, count: number }>} */
  const files = new Map();
  /** @type {Mutant[]} */
  const now = [];
  /** @type {Mutant[]} */
  const later = [];
  for (const mutant of mutants) {
    const { text, count } = files.get(mutant.file) ?? { text: read(mutant.file), count: 0 };
    const changed = count < ofOneFile ? changedBy(mutant, text) : undefined;
    if (changed === undefined) later.push(mutant);
    else {
      files.set(mutant.file, { text: changed, count: count + 1 });
      now.push(mutant);
    }
  }
  return { now, later };
}

/** Undefined where another mutant has changed its place. @param {Mutant} mutant @param {string} text */
function changedBy(mutant, text) {
  try {
    return mutated(mutant, text);
  } catch (error) {
    if (error instanceof DoesNotApply) return undefined;
    throw error;
  }
}

/**
 * Halves them until each that is refused stands alone.
 * @param {TreeCopy} copy @param {readonly Mutant[]} mutants @returns {Promise<readonly Refused[]>}
 */
async function refusedOf(copy, mutants) {
  const [first] = mutants;
  if (first === undefined) return [];
  const { ok, output } = await copy.with(mutants, async (built) => built);
  if (ok) return [];
  if (mutants.length === 1) return [{ name: first.name, output: output.trim() }];
  const half = Math.ceil(mutants.length / 2);
  return [...(await refusedOf(copy, mutants.slice(0, half))), ...(await refusedOf(copy, mutants.slice(half)))];
}
