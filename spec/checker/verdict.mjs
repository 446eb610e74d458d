// Runs one model to its end: every reachable state, or the shortest way to a violation.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { check_spec_with_options, initSync } from "tla-checker";
import { labelled } from "./trace.mjs";

initSync({ module: readFileSync(fileURLToPath(import.meta.resolve("tla-checker/tla_checker_bg.wasm"))) });

/** More than any model needs: running into a limit is reported as a failure, never as a verdict. */
const limits = { max_states: 50_000_000, max_depth: 10_000 };

/**
 * @typedef {object} Found
 * @property {string} name
 * @property {string} verdict "holds", "<invariant> is violated", or why there is none
 * @property {number} states
 * @property {number} seconds
 * @property {readonly string[]} trace one line per step
 */

/** @param {import("./models.mjs").Model} model @returns {Found} */
export function verdictOf({ name, module, cfg, invariants }) {
  const startedAt = performance.now();
  const options = { cfg_source: cfg, allow_deadlock: true, ...limits };
  const result = JSON.parse(check_spec_with_options(module, JSON.stringify(options)));
  const seconds = (performance.now() - startedAt) / 1000;
  if (result.warnings.length > 0) throw new Error(`${name}: ${result.warnings.join("; ")}`);
  const trace = result.trace === null || result.trace === undefined ? [] : labelled({ module, cfg, trace: result.trace.join("\n") });
  return { name, verdict: inWords(result, invariants), states: result.states_explored, seconds, trace };
}

/**
 * @param {{ success: boolean, error_type: string, error_message: string }} result
 * @param {readonly string[]} invariants
 */
function inWords({ success, error_type, error_message }, invariants) {
  if (success) return "holds";
  const [, index] = /^Invariant (\d+) violated$/.exec(error_message) ?? [];
  return error_type === "InvariantViolation" ? `${invariants[Number(index)]} is violated` : `${error_type}: ${error_message}`;
}
