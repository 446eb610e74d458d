// JSON taken apart without parsing it, so that what is passed on keeps every digit: the members of an
// object, the elements of an array, and what a merge patch makes of a document. Expects JSON. Looks
// at character codes: comparing texts of one character took a tenth of a transaction's time.

export const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c] as const;
export const [OPEN_OBJECT, CLOSE_OBJECT, OPEN_ARRAY, CLOSE_ARRAY] = [0x7b, 0x7d, 0x5b, 0x5d] as const;
const SPACE = 0x20;

type Member = readonly [key: string, text: string];

/** Undefined when the text is no object. */
export function membersOf(text: string): readonly Member[] | undefined {
  const cursor = into(text, OPEN_OBJECT);
  if (cursor === undefined) return undefined;
  const members: Member[] = [];
  while (goesOn(cursor, CLOSE_OBJECT)) members.push([keyAt(cursor), textAt(cursor)]);
  return members;
}

/** Undefined when the text is no array. */
export function elementsOf(text: string): readonly string[] | undefined {
  const cursor = into(text, OPEN_ARRAY);
  if (cursor === undefined) return undefined;
  const elements: string[] = [];
  while (goesOn(cursor, CLOSE_ARRAY)) elements.push(textAt(cursor));
  return elements;
}

interface Cursor {
  readonly text: string;
  at: number;
}

/** Behind what opens an object or array; undefined when the text is none. */
function into(text: string, opening: number): Cursor | undefined {
  const start = skipSpace(text, 0);
  return text.charCodeAt(start) === opening ? { text, at: start + 1 } : undefined;
}

/** Goes to the next member or element, past a comma, or past what closes them. */
function goesOn(cursor: Cursor, closing: number): boolean {
  const { text } = cursor;
  const at = skipSpace(text, cursor.at);
  const isClosed = text.charCodeAt(at) === closing;
  if (isClosed) cursor.at = at + 1;
  else cursor.at = text.charCodeAt(at) === COMMA ? skipSpace(text, at + 1) : at;
  return !isClosed;
}

/** Goes on to the value. */
function keyAt(cursor: Cursor): string {
  const { text, at } = cursor;
  const end = endOfString(text, at);
  cursor.at = skipSpace(text, skipSpace(text, end) + 1);
  return stringOf(text.slice(at, end));
}

/** The text of the value that begins here; goes past it. */
function textAt(cursor: Cursor): string {
  const start = cursor.at;
  cursor.at = endOfValue(cursor.text, start);
  return cursor.text.slice(start, cursor.at);
}

function stringOf(text: string): string {
  return text.includes("\\") ? String(JSON.parse(text)) : text.slice(1, -1);
}

function skipSpace(text: string, start: number): number {
  let at = start;
  while (text.charCodeAt(at) <= SPACE) at += 1;
  return at;
}

/** The index just past the value that starts here. */
function endOfValue(text: string, start: number): number {
  const first = text.charCodeAt(start);
  if (first === QUOTE) return endOfString(text, start);
  if (first !== OPEN_OBJECT && first !== OPEN_ARRAY) return endOfScalar(text, start);
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    const character = text.charCodeAt(at);
    if (character === QUOTE) at = endOfString(text, at) - 1;
    else if (character === OPEN_OBJECT || character === OPEN_ARRAY) depth += 1;
    else if (character === CLOSE_OBJECT || character === CLOSE_ARRAY) {
      depth -= 1;
      if (depth === 0) return at + 1;
    }
  }
  return text.length;
}

function endOfString(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); ; at = text.indexOf('"', at + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(at - 1 - backslashes) === BACKSLASH) backslashes += 1;
    if (backslashes % 2 === 0) return at + 1;
  }
}

function endOfScalar(text: string, start: number): number {
  let at = start;
  while (at < text.length && !endsScalar(text.charCodeAt(at))) at += 1;
  return at;
}

function endsScalar(character: number): boolean {
  return character === COMMA || character <= SPACE || character === CLOSE_OBJECT || character === CLOSE_ARRAY;
}

/** A scalar is its text, with the quotes of a string. */
type JsonTree = string | JsonTree[] | Map<string, JsonTree>;

/**
 * The document after a merge patch (RFC 7396), written as Postgres writes it. One pass over the
 * patch and one over the document, of which nothing is parsed that is not changed.
 */
export function mergePatch(document: string, patch: string): string {
  const changes = treeOf({ text: patch, at: skipSpace(patch, 0) });
  const cursor = changes instanceof Map ? into(document, OPEN_OBJECT) : undefined;
  return cursor === undefined || !(changes instanceof Map) ? textOf(changes, "removed") : mergedObject(cursor, changes).join("");
}

interface Merged {
  readonly key: string;
  readonly pieces: readonly string[];
}

/** The object that the cursor is in; goes past it. In pieces, or each level would copy those within it. */
function mergedObject(cursor: Cursor, changes: ReadonlyMap<string, JsonTree>): readonly string[] {
  const { text } = cursor;
  const members: Merged[] = [];
  const added = new Map(changes);
  while (goesOn(cursor, CLOSE_OBJECT)) {
    const start = cursor.at;
    const key = keyAt(cursor);
    const change = changes.get(key);
    added.delete(key);
    if (change instanceof Map && text.charCodeAt(cursor.at) === OPEN_OBJECT) {
      cursor.at += 1;
      members.push({ key, pieces: [memberText(key, ""), ...mergedObject(cursor, change)] });
      continue;
    }
    cursor.at = endOfValue(text, cursor.at);
    if (change === undefined) members.push({ key, pieces: [text.slice(start, cursor.at)] });
    else if (change !== "null") members.push({ key, pieces: [memberText(key, textOf(change, "removed"))] });
  }
  for (const [key, change] of added) if (change !== "null") members.push({ key, pieces: [memberText(key, textOf(change, "removed"))] });
  const pieces: string[] = [];
  for (const member of added.size === 0 ? members : inOrder(members)) {
    pieces.push(pieces.length === 0 ? "{" : ", ");
    for (const piece of member.pieces) pieces.push(piece);
  }
  pieces.push(pieces.length === 0 ? "{}" : "}");
  return pieces;
}

/** That of jsonb: short keys first, and those of one length by their bytes. */
function inOrder<M extends { readonly key: string }>(members: readonly M[]): M[] {
  const known = members.map((member) => ({ member, bytes: Buffer.from(member.key) }));
  known.sort((a, b) => a.bytes.length - b.bytes.length || a.bytes.compare(b.bytes));
  return known.map(({ member }) => member);
}

/** The value that begins at the cursor; goes past it. As in jsonb, the last member of a name counts. */
function treeOf(cursor: Cursor): JsonTree {
  const opening = cursor.text.charCodeAt(cursor.at);
  if (opening === OPEN_OBJECT) {
    cursor.at += 1;
    const members = new Map<string, JsonTree>();
    while (goesOn(cursor, CLOSE_OBJECT)) members.set(keyAt(cursor), treeOf(cursor));
    return members;
  }
  if (opening !== OPEN_ARRAY) return textAt(cursor);
  cursor.at += 1;
  const elements: JsonTree[] = [];
  while (goesOn(cursor, CLOSE_ARRAY)) elements.push(treeOf(cursor));
  return elements;
}

/** In an object of a patch, null says that there is no such member; in an array it is an element. */
function textOf(tree: JsonTree, nulls: "kept" | "removed"): string {
  if (typeof tree === "string") return scalarText(tree);
  if (Array.isArray(tree)) return `[${tree.map((element) => textOf(element, "kept")).join(", ")}]`;
  const members = Array.from(tree, ([key, value]) => ({ key, value })).filter(({ value }) => nulls === "kept" || value !== "null");
  return `{${inOrder(members)
    .map(({ key, value }) => memberText(key, textOf(value, nulls)))
    .join(", ")}}`;
}

function memberText(key: string, value: string): string {
  return `${JSON.stringify(key)}: ${value}`;
}

/** Without escapes that are not needed, exponents, and the sign of zero. */
function scalarText(text: string): string {
  if (text.charCodeAt(0) === QUOTE) return text.includes("\\") ? JSON.stringify(JSON.parse(text)) : text;
  const [, sign = "", whole, fraction = "", exponent = "0"] = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? [];
  if (whole === undefined) return text;
  const point = whole.length + Number(exponent);
  const digits = (whole + fraction).padEnd(point, "0");
  const [before, after] = point > 0 ? [digits.slice(0, point), digits.slice(point)] : ["0", "0".repeat(-point) + digits];
  const number = `${before.replace(/^0+(?=\d)/, "")}${after === "" ? "" : `.${after}`}`;
  return /[1-9]/.test(number) ? sign + number : number;
}
