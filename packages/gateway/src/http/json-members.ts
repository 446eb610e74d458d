// Where the members of a JSON object and the elements of a JSON array stand in its text, so that
// one of them can be passed on unchanged. Expects text that json-text.ts has accepted. Looks at
// character codes: comparing texts of one character took a tenth of a transaction's time.
export interface Member {
  readonly key: string;
  readonly text: string;
  /** Where the text of its value begins. */
  readonly at: number;
}

const [QUOTE, BACKSLASH, COMMA, SPACE] = [0x22, 0x5c, 0x2c, 0x20] as const;
const [OPEN_OBJECT, CLOSE_OBJECT, OPEN_ARRAY, CLOSE_ARRAY] = [0x7b, 0x7d, 0x5b, 0x5d] as const;

/** Undefined when the text is no object. */
export function membersOf(text: string): readonly Member[] | undefined {
  const start = skipSpace(text, 0);
  if (text.charCodeAt(start) !== OPEN_OBJECT) return undefined;
  const members: Member[] = [];
  let at = skipSpace(text, start + 1);
  while (text.charCodeAt(at) !== CLOSE_OBJECT) {
    const keyEnd = endOfString(text, at);
    const valueStart = skipSpace(text, skipSpace(text, keyEnd) + 1);
    const valueEnd = endOfValue(text, valueStart);
    members.push({ key: stringOf(text.slice(at, keyEnd)), text: text.slice(valueStart, valueEnd), at: valueStart });
    at = skipSeparator(text, valueEnd);
  }
  return members;
}

/** Undefined when the text is no array. */
export function elementsOf(text: string): readonly string[] | undefined {
  const start = skipSpace(text, 0);
  if (text.charCodeAt(start) !== OPEN_ARRAY) return undefined;
  const elements: string[] = [];
  let at = skipSpace(text, start + 1);
  while (text.charCodeAt(at) !== CLOSE_ARRAY) {
    const end = endOfValue(text, at);
    elements.push(text.slice(at, end));
    at = skipSeparator(text, end);
  }
  return elements;
}

export function stringOf(text: string): string {
  return text.includes("\\") ? String(JSON.parse(text)) : text.slice(1, -1);
}

function skipSeparator(text: string, at: number): number {
  const next = skipSpace(text, at);
  return text.charCodeAt(next) === COMMA ? skipSpace(text, next + 1) : next;
}

export function skipSpace(text: string, start: number): number {
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

export function endOfString(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); ; at = text.indexOf('"', at + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(at - 1 - backslashes) === BACKSLASH) backslashes += 1;
    if (backslashes % 2 === 0) return at + 1;
  }
}

export function endOfScalar(text: string, start: number): number {
  let at = start;
  while (at < text.length && !endsScalar(text.charCodeAt(at))) at += 1;
  return at;
}

function endsScalar(character: number): boolean {
  return character === COMMA || character <= SPACE || character === CLOSE_OBJECT || character === CLOSE_ARRAY;
}
