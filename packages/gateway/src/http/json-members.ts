// Where the members of a JSON object and the elements of a JSON array stand in its text, so that
// one of them can be passed on unchanged. Expects text that json-text.ts has accepted.
export interface Member {
  readonly key: string;
  readonly text: string;
}

/** Undefined when the text is no object. */
export function membersOf(text: string): readonly Member[] | undefined {
  const start = skipSpace(text, 0);
  if (text[start] !== "{") return undefined;
  const members: Member[] = [];
  let at = skipSpace(text, start + 1);
  while (text[at] !== "}") {
    const keyEnd = endOfValue(text, at);
    const key: unknown = JSON.parse(text.slice(at, keyEnd));
    const valueStart = skipSpace(text, skipSpace(text, keyEnd) + 1);
    const valueEnd = endOfValue(text, valueStart);
    members.push({ key: String(key), text: text.slice(valueStart, valueEnd) });
    at = skipSeparator(text, valueEnd);
  }
  return members;
}

/** Undefined when the text is no array. */
export function elementsOf(text: string): readonly string[] | undefined {
  const start = skipSpace(text, 0);
  if (text[start] !== "[") return undefined;
  const elements: string[] = [];
  let at = skipSpace(text, start + 1);
  while (text[at] !== "]") {
    const end = endOfValue(text, at);
    elements.push(text.slice(at, end));
    at = skipSeparator(text, end);
  }
  return elements;
}

function skipSeparator(text: string, at: number): number {
  const next = skipSpace(text, at);
  return text[next] === "," ? skipSpace(text, next + 1) : next;
}

function skipSpace(text: string, start: number): number {
  let at = start;
  while (at < text.length && text.charCodeAt(at) <= 0x20) at += 1;
  return at;
}

/** The index just past the value that starts here. */
function endOfValue(text: string, start: number): number {
  const first = text[start];
  if (first === '"') return endOfString(text, start);
  if (first !== "{" && first !== "[") return endOfScalar(text, start);
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    const character = text[at];
    if (character === '"') at = endOfString(text, at) - 1;
    else if (character === "{" || character === "[") depth += 1;
    else if (character === "}" || character === "]") {
      depth -= 1;
      if (depth === 0) return at + 1;
    }
  }
  return text.length;
}

function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text[at] !== '"') at += text[at] === "\\" ? 2 : 1;
  return at + 1;
}

function endOfScalar(text: string, start: number): number {
  let at = start;
  while (at < text.length && !",]} \t\r\n".includes(text[at] as string)) at += 1;
  return at;
}
