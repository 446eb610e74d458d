// The values and operators of Lua 5.1. nil is undefined; the rest are JavaScript's own.
import { Unsupported } from "./commands.js";

export type Value = undefined | boolean | number | string | Table | LuaFunction;
export type LuaFunction = (...args: Value[]) => Value | Several;

/** The result of a function that returns no value or several. A single value is returned bare. */
export class Several {
  constructor(readonly values: readonly Value[]) {}
}

export const nothing = new Several([]);

export function several(...values: Value[]): Several {
  return new Several(values);
}

/** The first value of a result. */
export function first(given: Value | Several): Value {
  return given instanceof Several ? given.values[0] : given;
}

/** All values of a result. */
export function all(given: Value | Several): readonly Value[] {
  return given instanceof Several ? given.values : [given];
}

/** A value thrown by `error` or by an operator. */
export class LuaError extends Error {
  constructor(readonly value: Value) {
    super(typeof value === "string" ? value : "a Lua value was thrown");
  }
}

export class Table {
  readonly list: Value[];
  readonly #fields: Map<string, Value> | undefined;

  constructor(list: Value[], fields?: Readonly<Record<string, Value>>) {
    this.list = list;
    this.#fields = fields === undefined ? undefined : new Map(Object.entries(fields));
  }

  get(key: Value): Value {
    if (typeof key === "number") return this.list[key - 1];
    if (typeof key === "string") return this.#fields?.get(key);
    throw new Unsupported(`a table's key of type ${typeOf(key)}`);
  }

  set(key: Value, value: Value): void {
    const { list } = this;
    if (typeof key === "string") throw new Unsupported("a field that is set");
    if (typeof key !== "number" || !Number.isInteger(key) || key < 1 || key > list.length + 1) throw new Unsupported("a list with gaps");
    else if (value === undefined && key === list.length) list.pop();
    else if (value === undefined && key < list.length) throw new Unsupported("a list with gaps");
    else if (value !== undefined) list[key - 1] = value;
  }
}

/** A list; nil at its end is dropped. */
export function tableOf(...list: Value[]): Table {
  while (list.length > 0 && list.at(-1) === undefined) list.pop();
  if (list.includes(undefined)) throw new Unsupported("a list with gaps");
  return new Table(list);
}

export function typeOf(value: Value): string {
  if (value === undefined) return "nil";
  return value instanceof Table ? "table" : typeof value;
}

export function truthy(value: Value): boolean {
  return value !== undefined && value !== false;
}

export function index(table: Value, key: Value): Value {
  if (table instanceof Table) return table.get(key);
  throw new LuaError(`attempt to index a ${typeOf(table)} value`);
}

export function assign(table: Value, key: Value, value: Value): void {
  if (!(table instanceof Table)) throw new LuaError(`attempt to index a ${typeOf(table)} value`);
  table.set(key, value);
}

export function length(value: Value): number {
  if (typeof value === "string") return value.length;
  if (value instanceof Table) return value.list.length;
  throw new LuaError(`attempt to get length of a ${typeOf(value)} value`);
}

/** The number that a whole string holds, as strtod reads it. */
export function numberIn(text: string): number | undefined {
  if (/^\s*[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?\s*$/i.test(text)) return Number(text);
  if (/^\s*[-+]?(0x|inf|nan)/i.test(text)) throw new Unsupported(`the number ${text}`);
  return undefined;
}

/** An operand of arithmetic: Lua converts strings that hold a number. */
export function operand(value: Value): number {
  if (typeof value === "number") return value;
  const number = typeof value === "string" ? numberIn(value) : undefined;
  if (number === undefined) throw new LuaError(`attempt to perform arithmetic on a ${typeOf(value)} value`);
  return number;
}

export function modulo(left: number, right: number): number {
  return left - Math.floor(left / right) * right;
}

export function textOf(value: Value): string {
  if (typeof value === "string") return value;
  if (typeof value !== "number") throw new LuaError(`attempt to concatenate a ${typeOf(value)} value`);
  if (!Number.isInteger(value) || Math.abs(value) >= 1e14) throw new Unsupported(`the number ${value} as text`);
  return String(value);
}

export function concat(left: Value, right: Value): string {
  return textOf(left) + textOf(right);
}

export function less(left: Value, right: Value): boolean {
  if (typeof left === "number" && typeof right === "number") return left < right;
  if (typeof left === "string" && typeof right === "string") return left < right;
  throw new LuaError(`attempt to compare ${typeOf(left)} with ${typeOf(right)}`);
}

export function lessOrEqual(left: Value, right: Value): boolean {
  if (typeof left === "number" && typeof right === "number") return left <= right;
  return !less(right, left);
}

// The functions of Lua's library that the scripts call, as Redis offers them. Uses that the scripts
// do not make are refused.

/** string.sub: both ends included; negative positions count from the end. */
function slice(text: string, start: number, end: number): string {
  const from = start < 0 ? Math.max(text.length + start, 0) : Math.max(start - 1, 0);
  return text.slice(from, Math.max(end < 0 ? text.length + end + 1 : end, 0));
}

const patterns = new Map<string, RegExp>();
const classes: Readonly<Record<string, string>> = { w: "A-Za-z0-9", d: "0-9", s: "\\s" };
const outside: Readonly<Record<string, string>> = { S: "[^\\s]", W: "[^A-Za-z0-9]", D: "[^0-9]" };

/** A Lua pattern of characters, sets, repetitions and captures as a regular expression. */
export function patternOf(source: string): RegExp {
  let pattern = patterns.get(source);
  if (pattern === undefined) {
    pattern = new RegExp(translated(source));
    patterns.set(source, pattern);
  }
  return pattern;
}

function translated(source: string): string {
  if (/%[^wdsSWD]|[-.$]/.test(source.replaceAll(/\[[^\]]*\]/g, (set) => set.replaceAll("-", ""))))
    throw new Unsupported(`the pattern ${source}`);
  let inSet = false;
  return source.replaceAll(/%(.)|[[\]{}|/\\]/g, (found, name: string | undefined) => {
    if (name === undefined) {
      if (found === "[" || found === "]") inSet = found === "[";
      return found === "[" || found === "]" ? found : `\\${found}`;
    }
    const members = classes[name];
    if (members === undefined) {
      if (inSet) throw new Unsupported(`the pattern ${source}`);
      return outside[name] as string;
    }
    return inSet ? members : `[${members}]`;
  });
}

function matched(text: string, pattern: string): Value | Several {
  const found = patternOf(pattern).exec(text);
  if (found === null) return undefined;
  return found.length === 1 ? found[0] : several(...found.slice(1));
}

function find([given, pattern, start, isPlain]: readonly Value[]): Value | Several {
  const [text, sought] = [textOf(given), textOf(pattern)];
  if (!truthy(isPlain)) {
    if (start !== undefined) throw new Unsupported("a pattern that is sought from within a string");
    const found = patternOf(sought).exec(text);
    return found === null ? undefined : several(found.index + 1, found.index + found[0].length, ...found.slice(1));
  }
  const at = text.indexOf(sought, operand(start ?? 1) - 1);
  return at < 0 ? undefined : several(at + 1, at + sought.length);
}

function format(template: Value, ...values: Value[]): string {
  let next = 0;
  return textOf(template).replace(/%[-0]*\d*(?:\.\d+)?./g, (directive) => formatted(directive, values[next++]));
}

function formatted(directive: string, value: Value): string {
  if (directive === "%.0f") return digits(value);
  const [, flags, width, precision, kind] = /^%([-0]*)(\d*)(?:\.(\d+))?(.)$/.exec(directive) ?? [];
  const isText = kind === "s";
  if (!isText && (kind !== "f" || precision !== "0")) throw new Unsupported(`the directive ${directive}`);
  const text = isText ? textOf(value).slice(0, precision === undefined ? undefined : Number(precision)) : digits(value);
  if (flags === "-") return text.padEnd(Number(width));
  return text.padStart(Number(width), flags === "0" && !isText ? "0" : " ");
}

function digits(value: Value): string {
  const number = operand(value);
  if (!Number.isSafeInteger(number) || number < 0) throw new Unsupported(`the number ${number} as digits`);
  return String(number);
}

/** Catches errors of Lua only: an error of the simulation must end the run. */
function pcall(run: Value, ...args: Value[]): Several {
  try {
    return several(true, ...all((run as LuaFunction)(...args)));
  } catch (error) {
    if (error instanceof LuaError) return several(false, error.value);
    throw error;
  }
}

function functionsIn(functions: Readonly<Record<string, LuaFunction>>): Table {
  return new Table([], functions);
}

const text = functionsIn({
  sub: (value, start, end) => slice(textOf(value), operand(start), end === undefined ? -1 : operand(end)),
  byte(value, at) {
    const place = operand(at ?? 1);
    const character = slice(textOf(value), place, place);
    return character === "" ? nothing : character.charCodeAt(0);
  },
  find: (...given) => find(given),
  match: (value, pattern) => matched(textOf(value), textOf(pattern)),
  gsub(value, pattern, replacement, most) {
    if (most !== 1) throw new Unsupported("a replacement of more than one");
    const [given, sought] = [textOf(value), patternOf(textOf(pattern))];
    return several(
      given.replace(sought, () => textOf(replacement)),
      sought.test(given) ? 1 : 0,
    );
  },
  format,
});

export const globals: Readonly<Record<string, Value>> = {
  string: text,
  math: functionsIn({
    max: (...values) => Math.max(...values.map(operand)),
    min: (...values) => Math.min(...values.map(operand)),
    floor: (value) => Math.floor(operand(value)),
  }),
  // Of lists of strings.
  cjson: functionsIn({
    encode: (value) => JSON.stringify((value as Table).list),
    decode: (value) => new Table(JSON.parse(textOf(value)) as string[]),
  }),
  tonumber: (value) => (typeof value === "string" ? numberIn(value) : typeof value === "number" ? value : undefined),
  tostring: (value) => (value === undefined || typeof value === "boolean" ? String(value ?? "nil") : textOf(value)),
  type: (value) => typeOf(value),
  unpack(value) {
    if (!(value instanceof Table)) throw new LuaError(`table expected, got ${typeOf(value)}`);
    return several(...value.list);
  },
  error(value) {
    throw new LuaError(value);
  },
  pcall,
};
