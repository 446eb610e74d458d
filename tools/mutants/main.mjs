// The program behind `npm run mutants`. Exit code 0 only if every tried mutant was killed.
import { writeFileSync } from "node:fs";
import { constants } from "node:os";
import { Interrupted, interrupt } from "../go/child.mjs";
import { Refusal } from "../go/refusal.mjs";
import { readArguments, selected } from "./arguments.mjs";
import { catalogue } from "./catalogue.mjs";
import { compileMutants } from "./compile.mjs";
import { countLine, failures, progressLine, table } from "./report.mjs";
import { runMutants } from "./run.mjs";

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
  const request = readArguments(args, Math.random());
  const mutants = selected(catalogue, request);
  if (request.list) {
    for (const { name, promise, file, breaks } of mutants) console.log(`${name}  ${promise}  ${file}\n    ${breaks}`);
    return 0;
  }
  if (request.compile) {
    const refused = await compileMutants(mutants, (line) => console.log(line));
    for (const { name, output } of refused) console.log(`${name} does not compile:\n${output}`);
    return refused.length === 0 ? 0 : 1;
  }
  const startedAt = performance.now();
  const seconds = () => Math.round((performance.now() - startedAt) / 1_000);
  let count = 0;
  const outcomes = await runMutants({
    mutants,
    short: request.short,
    say: (line) => console.log(line),
    onOutcome: (one) => console.log(progressLine(one, `${++count} of ${mutants.length}`)),
  });
  console.log(["", ...table(outcomes), ""].join("\n"));
  for (const failure of failures(outcomes)) console.log(failure);
  if (request.short)
    console.log(`seed ${request.seed}: npm run mutants -- --short --seed ${request.seed} tries the same; ${catalogue.length} there are`);
  if (outcomes.length < mutants.length)
    console.log(`${mutants.length - outcomes.length} more were selected and not tried: the time was up`);
  console.log(`in ${seconds()} s`);
  const report = { seed: request.short ? request.seed : undefined, seconds: seconds(), known: catalogue.length, mutants: outcomes };
  if (request.json !== undefined) writeFileSync(request.json, `${JSON.stringify(report, null, 2)}\n`);
  console.log(countLine(outcomes));
  return outcomes.length > 0 && failures(outcomes).length === 0 ? 0 : 1;
}
