// The program behind `npm run mutants`. Decides the exit code: 0 only if every mutant that was tried was killed.
import { writeFileSync } from "node:fs";
import { constants } from "node:os";
import { Interrupted, interrupt } from "../go/child.mjs";
import { Refusal } from "../go/refusal.mjs";
import { countLine, failings, progressLine, table } from "./account.mjs";
import { readArguments } from "./arguments.mjs";
import { hold } from "./campaign.mjs";
import { catalogue } from "./catalogue.mjs";
import { chosen } from "./choice.mjs";

/** @type {NodeJS.Signals | undefined} */
let ended;
for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"])) {
  process.on(signal, () => {
    ended ??= signal;
    interrupt(signal);
  });
}

try {
  process.exitCode = await perform(process.argv.slice(2));
} catch (error) {
  if (error instanceof Refusal) console.error(`mutants: ${error.message}`);
  else if (!(error instanceof Interrupted)) console.error(error);
  process.exitCode = ended === undefined ? 1 : 128 + constants.signals[ended];
}

/** @param {readonly string[]} args */
async function perform(args) {
  const wish = readArguments(args, Math.random());
  const mutants = chosen(catalogue, wish);
  if (wish.list) {
    for (const { name, promise, file, breaks } of mutants) console.log(`${name}  ${promise}  ${file}\n    ${breaks}`);
    return 0;
  }
  const startedAt = performance.now();
  const seconds = () => Math.round((performance.now() - startedAt) / 1_000);
  let count = 0;
  const tried = await hold({
    mutants,
    short: wish.short,
    say: (line) => console.log(line),
    onTried: (one) => console.log(progressLine(one, `${++count} of ${mutants.length}`)),
  });
  console.log(["", ...table(tried), ""].join("\n"));
  for (const failing of failings(tried)) console.log(failing);
  if (wish.short)
    console.log(`seed ${wish.seed}: npm run mutants -- --short --seed ${wish.seed} tries the same; ${catalogue.length} there are`);
  if (tried.length < mutants.length) console.log(`${mutants.length - tried.length} more were chosen and not tried: the time was up`);
  console.log(`in ${seconds()} s`);
  const report = { seed: wish.short ? wish.seed : undefined, seconds: seconds(), known: catalogue.length, mutants: tried };
  if (wish.json !== undefined) writeFileSync(wish.json, `${JSON.stringify(report, null, 2)}\n`);
  console.log(countLine(tried));
  return tried.length > 0 && failings(tried).length === 0 ? 0 : 1;
}
