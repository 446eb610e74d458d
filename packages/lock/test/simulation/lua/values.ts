// The values and operators of Lua 5.1. nil is undefined; the rest are JavaScript's own.
import { Unsupported } from "../server/memory.js";

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
