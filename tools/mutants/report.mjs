// What a run prints: a line while it goes on, a table, the survivors with what they break, and the
// count. Pure: text out.

/** @typedef {import("./verdict.mjs").Outcome} Outcome */

/** @param {Outcome} outcome @param {string} place "3 of 48" */
export function progressLine({ name, result, seconds }, place) {
  const verdict = { killed: "killed", survived: "SURVIVED", unclear: "UNCLEAR" }[result.verdict];
  return `${place}  ${verdict}  ${name}  ${seconds.toFixed(1)} s`;
}

/** @param {readonly Outcome[]} outcomes @returns {readonly string[]} */
export function table(outcomes) {
  const rows = outcomes.map(({ name, promise, result, seconds }) => [name, promise, `${seconds.toFixed(1)} s`, described(result)]);
  const widths = [0, 1, 2].map((column) => Math.max(0, ...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map(([name = "", promise = "", time = "", result = ""]) => {
    return `${name.padEnd(widths[0] ?? 0)}  ${promise}  ${time.padStart(widths[2] ?? 0)}  ${result}`;
  });
}

/** @param {Outcome["result"]} result */
function described(result) {
  if (result.verdict === "survived") return "SURVIVED";
  if (result.verdict === "unclear") return "UNCLEAR";
  const where = result.expected ? "" : ", which is not where it was expected";
  return `${result.file.replace("packages/", "")}: ${result.title}${where}`;
}

/**
 * Those that were not killed, with what that means.
 * @param {readonly Outcome[]} outcomes @returns {readonly string[]}
 */
export function failures(outcomes) {
  return outcomes.flatMap(({ name, file, breaks, result }) => {
    if (result.verdict === "survived") return [`${name} survived (${file}): ${breaks} No test notices.`];
    return result.verdict === "unclear" ? [`${name} could not be judged (${file}): ${result.why}`] : [];
  });
}

/** The last line. @param {readonly Outcome[]} outcomes */
export function countLine(outcomes) {
  return `${outcomes.filter(({ result }) => result.verdict === "killed").length} of ${outcomes.length} mutants killed`;
}
