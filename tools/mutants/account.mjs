// What a run says: a line while it goes on, a table, the survivors with what they break, and the count. Pure: text out.

/** @typedef {import("./trial.mjs").Tried} Tried */

/** @param {Tried} tried @param {string} place "3 of 48" */
export function progressLine(tried, place) {
  const { name, result, seconds } = tried;
  const told = { killed: "killed", survived: "SURVIVED", unclear: "UNCLEAR" }[result.verdict];
  return `${place}  ${told}  ${name}  ${seconds.toFixed(1)} s`;
}

/** @param {readonly Tried[]} all @returns {readonly string[]} */
export function table(all) {
  const rows = all.map(({ name, promise, result, seconds }) => [name, promise, `${seconds.toFixed(1)} s`, saying(result)]);
  const widths = [0, 1, 2].map((column) => Math.max(0, ...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map(([name = "", promise = "", time = "", told = ""]) => {
    return `${name.padEnd(widths[0] ?? 0)}  ${promise}  ${time.padStart(widths[2] ?? 0)}  ${told}`;
  });
}

/** @param {Tried["result"]} result */
function saying(result) {
  if (result.verdict === "survived") return "SURVIVED";
  if (result.verdict === "unclear") return "UNCLEAR";
  const where = result.expected ? "" : ", which is not where it was expected";
  return `${result.file.replace("packages/", "")}: ${result.title}${where}`;
}

/** Those that were not killed, with what that means. @param {readonly Tried[]} all @returns {readonly string[]} */
export function failings(all) {
  return all.flatMap(({ name, file, breaks, result }) => {
    if (result.verdict === "survived") return [`${name} survived (${file}): ${breaks} No test notices.`];
    return result.verdict === "unclear" ? [`${name} could not be judged (${file}): ${result.why}`] : [];
  });
}

/** The last line. @param {readonly Tried[]} all */
export function countLine(all) {
  return `${all.filter(({ result }) => result.verdict === "killed").length} of ${all.length} mutants killed`;
}
