// JSON that is already text. JSON.parse rounds 12345678901234567890, so a document with such numbers travels as the text it is.
export class RawJson {
  constructor(readonly text: string) {}
}

export function rawJson(text: string): RawJson {
  JSON.parse(text);
  return new RawJson(text);
}

export function jsonTextOf(value: unknown): string {
  if (value instanceof RawJson) return value.text;
  const text: string | undefined = JSON.stringify(value);
  if (text === undefined) throw new TypeError(`${typeof value} is not something JSON can hold`);
  return text;
}
