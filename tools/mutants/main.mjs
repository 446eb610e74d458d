// `npm run mutants`: two copies of the tree, in which all tests must be green without a mutant; then
// the mutants, two at a time, each judged first by the tests that are expected to notice it and, if
// they stay green, by all tests of its package. Exit code 0 only if every tried mutant was killed.
import { chmodSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { perform, Refusal, readArguments } from "../run.mjs";
import { catalogue, selected, suiteOf, testsOf, together } from "./mutant.mjs";
import { TreeCopy } from "./tree-copy.mjs";

const AT_ONCE = 2;
/** How many a short run tries; about a minute and a half in all, on two cores. */
const SHORT_COUNT = 14;
/**
 * A short run begins no further mutant after so long. Each copy tries one in any case: a machine
 * that was slow with the baseline has not failed.
 */
const SHORT_MS = 75_000;
/** Compiled in one build, of one file. Two of a file may be refused together and not apart, so few. */
const OF_ONE_FILE = 4;
/** An unexpected test may have failed by chance, on a busy machine, so it has to fail again. */
const CHANCES = 3;

/**
 * killed: a test went red. survived: none did. unclear: the mutant could not be judged, which is no
 * better. @typedef {import("./mutant.mjs").Mutant} Mutant
 * @typedef {{ verdict: "killed" | "SURVIVED" | "UNCLEAR", says: string }} Verdict
 */

await perform(async () => {
  const options = /** @type {const} */ ({
    list: { type: "boolean" },
    compile: { type: "boolean" },
    short: { type: "boolean" },
    seed: { type: "string" },
  });
  const { values, positionals: names } = readArguments(options, "mutants -- [--list | --compile | --short [--seed N]] [NAME…]");
  const seed = Number(values.seed ?? Math.floor(Math.random() * 1_000_000));
  if (!Number.isInteger(seed) || seed < 0) throw new Refusal(`--seed must be a whole number, not ${values.seed}`);
  if ((values.seed !== undefined && !values.short) || (values.short && (names.length > 0 || values.compile)))
    throw new Refusal("--seed selects the mutants of a short run, which takes no names and compiles nothing else");
  const mutants = selected(values.short ? { names, seed, count: SHORT_COUNT } : { names });
  if (values.list) {
    for (const { name, promise, file, breaks } of mutants) console.log(`${name}  ${promise}  ${file}\n    ${breaks}`);
    return 0;
  }
  const folder = mkdtempSync(join(realpathSync(tmpdir()), "palisade-mutants-"));
  chmodSync(folder, 0o755); // Servers that run under an account of their own must get through.
  try {
    if (values.compile) return await compile(new TreeCopy(folder), mutants);
    if (values.short) console.log(`seed ${seed}: ${mutants.length} of ${catalogue.length} mutants`);
    return await tryAll(mutants, values.short === true, folder);
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }
});

/** @param {readonly Mutant[]} mutants @param {boolean} isShort @param {string} folder */
async function tryAll(mutants, isShort, folder) {
  const startedAt = performance.now();
  const copies = Array.from({ length: Math.min(AT_ONCE, mutants.length) }, (_, at) => new TreeCopy(join(folder, String(at))));
  // A short run rests on the tests having been green elsewhere, and looks only at the files it needs.
  const few = isShort || mutants.length <= AT_ONCE;
  await baseline(copies, [...new Set(mutants.flatMap((mutant) => (few ? testsOf(mutant) : [suiteOf(mutant)])))]);
  console.log(`without a mutant all tests are green (${seconds(startedAt)})`);
  const queue = [...mutants];
  /** @type {string[]} */
  const failures = [];
  let tried = 0;
  await all(
    copies.map(async (copy) => {
      for (let mutant = queue.shift(), first = true; mutant !== undefined; mutant = queue.shift(), first = false) {
        if (isShort && !first && performance.now() - startedAt > SHORT_MS) return void queue.unshift(mutant);
        const { name, promise, file, breaks } = mutant;
        const beganAt = performance.now();
        const { verdict, says } = await judged(copy, mutant);
        console.log(`${++tried} of ${mutants.length}  ${verdict}  ${name}  ${promise}  ${seconds(beganAt)}  ${says}`);
        if (verdict !== "killed") failures.push(`${name} ${verdict} (${file}): ${breaks} ${says}`);
      }
    }),
  );
  for (const failure of failures) console.log(failure);
  if (tried < mutants.length) console.log(`${mutants.length - tried} more were selected and not tried: the time was up`);
  console.log(`in ${seconds(startedAt)}\n${tried - failures.length} of ${tried} mutants killed`);
  return failures.length === 0 ? 0 : 1;
}

/** Half of the files in each copy, at the same time, as it will be with the mutants. @param {readonly TreeCopy[]} copies @param {readonly string[]} filters */
async function baseline(copies, filters) {
  const shards = filters.length > copies.length ? copies.length : 1; // Fewer files cannot be halved.
  await all(
    copies.map(async (copy, at) => {
      const built = await copy.build();
      if (!built.ok)
        throw new Refusal(`without any mutant the sources do not compile, so nothing can be said of mutants.\n${built.output}`);
      if (at >= shards) return;
      const finding = await copy.test(filters, shards === 1 ? undefined : `${at + 1}/${shards}`);
      if (finding.kind === "green") return;
      const what = finding.kind === "red" ? `${finding.file}: ${finding.title}\n${finding.message}` : finding.why;
      throw new Refusal(`without any mutant the tests are not green, so nothing can be said of mutants: ${what}`);
    }),
  );
}

/** @param {TreeCopy} copy @param {Mutant} mutant */
function judged(copy, mutant) {
  return copy.with([mutant], async ({ ok, output }) => {
    if (!ok) return unclear(`it does not compile, so no test has judged it: ${output.trim()}`);
    const named = await copy.test(testsOf(mutant));
    if (named.kind === "red") return killed(named);
    if (named.kind === "unclear") return unclear(named.why);
    const titles = [];
    for (let tries = 0; tries < CHANCES; tries++) {
      const found = await copy.test([suiteOf(mutant)]);
      if (found.kind === "green") return /** @type {Verdict} */ ({ verdict: "SURVIVED", says: "No test notices." });
      if (found.kind === "unclear") return unclear(found.why);
      const again = await copy.test([found.file]);
      if (again.kind === "red" && again.title === found.title) return killed(found, ", which is not where it was expected");
      titles.push(`${found.file}: ${found.title}`);
    }
    return unclear(`these tests failed once and not again\n  ${titles.join("\n  ")}`);
  });
}

/** @param {{ file: string, title: string }} red @returns {Verdict} */
function killed({ file, title }, where = "") {
  return { verdict: "killed", says: `${file.replace("packages/", "")}: ${title}${where}` };
}

/** @param {string} says @returns {Verdict} */
function unclear(says) {
  return { verdict: "UNCLEAR", says };
}

/** Many at a time and no test: one that does not compile says nothing about the tests. @param {TreeCopy} copy @param {readonly Mutant[]} mutants */
async function compile(copy, mutants) {
  const { ok, output } = await copy.build();
  if (!ok) throw new Refusal(`without any mutant the sources do not compile.\n${output}`);
  let refused = 0;
  let compiled = 0;
  for (let left = mutants.filter(({ file }) => extname(file) === ".ts"); left.length > 0; ) {
    const { now, later } = together(left, OF_ONE_FILE, (file) => copy.read(file));
    for (const { name, why } of await refusedOf(copy, now)) {
      refused += 1;
      console.log(`${name} does not compile:\n${why}`);
    }
    compiled += now.length;
    console.log(`${compiled} of ${compiled + later.length} compiled, ${refused} refused`);
    left = later;
  }
  return refused === 0 ? 0 : 1;
}

/** Halves them until each that is refused stands alone. @param {TreeCopy} copy @param {readonly Mutant[]} mutants @returns {Promise<readonly { name: string, why: string }[]>} */
async function refusedOf(copy, mutants) {
  const { ok, output } = await copy.with(mutants, async (built) => built);
  if (ok) return [];
  if (mutants.length === 1) return mutants.map(({ name }) => ({ name, why: output.trim() }));
  const half = Math.ceil(mutants.length / 2);
  return [...(await refusedOf(copy, mutants.slice(0, half))), ...(await refusedOf(copy, mutants.slice(half)))];
}

/** Waits for all, also when one fails: the others still work in the folder that is removed next. @param {readonly Promise<void>[]} works */
async function all(works) {
  for (const end of await Promise.allSettled(works)) if (end.status === "rejected") throw end.reason;
}

/** @param {number} startedAt */
function seconds(startedAt) {
  return `${((performance.now() - startedAt) / 1_000).toFixed(0)} s`;
}
