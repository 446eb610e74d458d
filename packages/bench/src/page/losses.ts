// Where another is faster, or takes less processor time: found in the results, not chosen.
import { type Result, type Row, ratioOf } from "../measure/results.js";
import { shown } from "../measure/text.js";
import { GATEWAY, LOCK } from "./goals.js";

/** Less than that is noise. */
const NOISE = 1.02;
const NOISE_OF_PROCESSOR = 1.05;
const roles = ["clientUs", "redisUs", "serverUs", "postgresUs", "workersUs"];

const nameOf = ({ name, kind }: Row): string => (kind === "bound" ? `${name} (a bound, no product)` : name);

/** Rows of a table: what is measured, who is better, by how much. */
export function lossRows(results: readonly Result[]): readonly (readonly string[])[] {
  return results.flatMap((result) => {
    const own = result.rows.find(({ name }) => name === LOCK || name === GATEWAY);
    if (own === undefined || result.compared === undefined) return [];
    const { compared } = result;
    return result.rows
      .filter(({ kind }) => kind !== "ours")
      .flatMap((row) => {
        const ratio = ratioOf(result, compared, compared === "p50Us" ? [own.name, row.name] : [row.name, own.name]);
        const processor = processorOf(own) / processorOf(row);
        const losses = [
          ...(ratio !== undefined && ratio > NOISE ? [`${compared === "p50Us" ? "p50" : "rate"} ${shown(ratio, 2)} × better`] : []),
          ...(processor > NOISE_OF_PROCESSOR ? [`processor time ${shown(processor, 2)} × less`] : []),
        ];
        return losses.length === 0 ? [] : [[result.title, nameOf(row), losses.join(", ")]];
      });
  });
}

/** Of all processes together, per operation. */
function processorOf({ figures }: Row): number {
  return roles.reduce((total, role) => total + (figures[role] ?? 0), 0);
}
