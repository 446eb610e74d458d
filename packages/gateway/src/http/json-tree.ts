// A JSON document that can be changed and written again with every digit: a string, a number or a
// word stays the text that it was. Expects text that json-text.ts has accepted or that Postgres
// gave.
import { endOfScalar, endOfString, skipSpace, stringOf } from "./json-members.js";

/** A scalar is its text, with the quotes of a string. */
export type JsonTree = string | JsonTree[] | Map<string, JsonTree>;

const [QUOTE, COMMA, OPEN_OBJECT, CLOSE_OBJECT, OPEN_ARRAY, CLOSE_ARRAY] = [0x22, 0x2c, 0x7b, 0x7d, 0x5b, 0x5d] as const;

interface Cursor {
  readonly text: string;
  at: number;
}

export function treeOf(text: string): JsonTree {
  return valueAt({ text, at: 0 });
}

function valueAt(cursor: Cursor): JsonTree {
  const { text } = cursor;
  const start = skipSpace(text, cursor.at);
  const first = text.charCodeAt(start);
  cursor.at = start + 1;
  if (first === OPEN_OBJECT) return objectAt(cursor);
  if (first === OPEN_ARRAY) return arrayAt(cursor);
  cursor.at = first === QUOTE ? endOfString(text, start) : endOfScalar(text, start);
  return text.slice(start, cursor.at);
}

/** As in jsonb, the last of several members of one name counts. */
function objectAt(cursor: Cursor): JsonTree {
  const { text } = cursor;
  const members = new Map<string, JsonTree>();
  while (goesOn(cursor, CLOSE_OBJECT)) {
    const keyEnd = endOfString(text, cursor.at);
    const key = stringOf(text.slice(cursor.at, keyEnd));
    cursor.at = skipSpace(text, keyEnd) + 1;
    members.set(key, valueAt(cursor));
  }
  return members;
}

function arrayAt(cursor: Cursor): JsonTree {
  const elements: JsonTree[] = [];
  while (goesOn(cursor, CLOSE_ARRAY)) elements.push(valueAt(cursor));
  return elements;
}

/** Goes to the next member or element, past a comma, or past what closes them. */
function goesOn(cursor: Cursor, closing: number): boolean {
  const { text } = cursor;
  cursor.at = skipSpace(text, cursor.at);
  const isClosed = text.charCodeAt(cursor.at) === closing;
  if (text.charCodeAt(cursor.at) === COMMA) cursor.at = skipSpace(text, cursor.at + 1);
  if (isClosed) cursor.at += 1;
  return !isClosed;
}

/** Asked before the text is made: that of a thousand levels takes a thousand times as long. */
export function isDeeperThan(levels: number, tree: JsonTree): boolean {
  if (typeof tree === "string") return false;
  if (levels === 0) return true;
  for (const part of tree.values()) if (isDeeperThan(levels - 1, part)) return true;
  return false;
}

export function textOf(tree: JsonTree): string {
  if (typeof tree === "string") return tree;
  if (Array.isArray(tree)) return `[${tree.map(textOf).join(",")}]`;
  return `{${Array.from(tree, ([key, value]) => `${JSON.stringify(key)}:${textOf(value)}`).join(",")}}`;
}

/** By value: members in any order, 1.0 as 1, a character as its escape. */
export function isSame(one: JsonTree, other: JsonTree): boolean {
  if (typeof one === "string" || typeof other === "string")
    return typeof one === "string" && typeof other === "string" && (one === other || scalarOf(one) === scalarOf(other));
  if (Array.isArray(one) || Array.isArray(other))
    return Array.isArray(one) && Array.isArray(other) && one.length === other.length && one.every((value, i) => isPart(value, other[i]));
  return one.size === other.size && Array.from(one).every(([key, value]) => isPart(value, other.get(key)));
}

function isPart(value: JsonTree, other: JsonTree | undefined): boolean {
  return other !== undefined && isSame(value, other);
}

/** One text for all that say the same. */
function scalarOf(text: string): string {
  const first = text.charCodeAt(0);
  if (first === QUOTE) return `"${stringOf(text)}`;
  const number = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text);
  if (number === null) return text;
  const [, sign = "", whole = "", fraction = "", exponent = "0"] = number;
  const digits = whole + fraction;
  let [from, to] = [0, digits.length];
  while (digits[from] === "0") from += 1;
  while (to > from && digits[to - 1] === "0") to -= 1;
  return from === to ? "0" : `${sign}${digits.slice(from, to)}e${Number(exponent) - fraction.length + digits.length - to}`;
}
