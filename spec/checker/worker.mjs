// One thread of the check: is handed models one by one, and runs each to its end: every reachable state, or the shortest
// way to a violation.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parentPort } from "node:worker_threads";
import { check_spec_with_options, explore_init, explore_next, initSync } from "tla-checker";

initSync({ module: readFileSync(fileURLToPath(import.meta.resolve("tla-checker/tla_checker_bg.wasm"))) });

parentPort?.on("message", (/** @type {import("./models.mjs").Model} */ model) => parentPort?.postMessage(verdictOf(model)));

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
function verdictOf({ name, module, cfg, invariants }) {
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

// Makes a trace readable: the checker gives states, this gives the step that leads to each, by
// name, with what it changed. Every state is found again among the successors of the one before it,
// so a trace that is printed is a way through the model, not just a text.

/** @typedef {{ readonly display: Readonly<Record<string, string>>, readonly json: unknown }} State */

/** @param {{ module: string, cfg: string, trace: string }} found @returns {readonly string[]} */
function labelled({ module, cfg, trace }) {
  const wanted = trace
    .split(/^State \d+\n/m)
    .filter((text) => text.trim() !== "")
    .map((text) => text.trimEnd());
  let state = same(asked(explore_init(module, cfg, "{}")).states, wanted[0]);
  const lines = [];
  for (const text of wanted.slice(1)) {
    const { transitions } = asked(explore_next(module, cfg, "{}", JSON.stringify(state.json)));
    const next = transitions.find((/** @type {{ state: State }} */ transition) => isShownAs(transition.state, text));
    if (next === undefined) throw new Error(`no step leads to\n${text}`);
    const number = String(lines.length + 1).padStart(2);
    lines.push(`${number}  ${String(next.action).padEnd(16)}${changes("", state.json, next.state.json).join(", ")}`.trimEnd());
    state = next.state;
  }
  return lines;
}

/** @param {string} answer */
function asked(answer) {
  const { ok, error, ...rest } = JSON.parse(answer);
  if (!ok) throw new Error(error);
  return rest;
}

/** @param {readonly State[]} states @param {string | undefined} text @returns {State} */
function same(states, text = "") {
  const state = states.find((one) => isShownAs(one, text));
  if (state === undefined) throw new Error(`no initial state is\n${text}`);
  return state;
}

/** @param {State} state @param {string} text */
function isShownAs({ display }, text) {
  return text.split("\n").every((line) => {
    const [variable = "", value] = line.trim().split(/ = (.*)/s);
    return display[variable] === value;
  });
}

/**
 * Everything that differs, as "path old → new"; a row of which more than one entry differs is shown
 * whole, a set by what came and went.
 * @param {string} path @param {any} before @param {any} after @returns {readonly string[]}
 */
function changes(path, before, after) {
  if (JSON.stringify(before) === JSON.stringify(after)) return [];
  if (Array.isArray(before) && Array.isArray(after)) return [`${path} ${comings(before, after).join(" ")}`];
  const [old, fresh] = [parts(before), parts(after)];
  if (old === undefined || fresh === undefined || old.length !== fresh.length) return [`${path} ${shown(before)} → ${shown(after)}`];
  const inside = fresh.flatMap(([key, value], index) =>
    changes(typeof key === "number" ? `${path}[${key}]` : joined(path, key), old[index]?.[1], value),
  );
  const isRow = fresh.every(([key, value]) => typeof key === "number" && typeof value !== "object");
  return isRow && inside.length > 1 ? [`${path} ${row(old)} → ${row(fresh)}`] : inside;
}

/** @param {readonly any[]} before @param {readonly any[]} after @returns {readonly string[]} */
function comings(before, after) {
  const [old, fresh] = [before.map(shown), after.map(shown)];
  return [
    ...old.filter((item) => !fresh.includes(item)).map((item) => `− ${item}`),
    ...fresh.filter((item) => !old.includes(item)).map((item) => `+ ${item}`),
  ];
}

/** @param {readonly (readonly [string | number, any])[]} entries */
function row(entries) {
  return `(${entries.map(([, value]) => shown(value)).join(" ")})`;
}

/** @param {string} path @param {string} key */
function joined(path, key) {
  return path === "" ? key : `${path}.${key}`;
}

/**
 * The components of a tuple or a record; undefined for what is shown whole.
 * @param {any} value @returns {readonly (readonly [string | number, any])[] | undefined}
 */
function parts(value) {
  if (typeof value !== "object" || Array.isArray(value)) return undefined;
  const tuple = value.__tuple;
  return tuple === undefined
    ? Object.entries(value)
    : tuple.map((/** @type {any} */ item, /** @type {number} */ index) => [index + 1, item]);
}

/** @param {any} value @returns {string} */
function shown(value) {
  if (typeof value !== "object") return String(value);
  if (Array.isArray(value)) return `{${value.map(shown).join(", ")}}`;
  const all = parts(value) ?? [];
  return `[${all.map(([key, item]) => (typeof key === "number" ? shown(item) : `${key} ${shown(item)}`)).join(", ")}]`;
}
