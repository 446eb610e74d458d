// Text from elsewhere as it may be shown: names and labels are chosen by others, and a terminal
// obeys what it is sent.
import stringWidth from "string-width";

/** Control characters, and those that reorder, hide or join what stands beside them. */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

export function printable(text: string): string {
  return text.replace(UNSAFE, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);
}

/** The beginning of the text, in at most so many columns; printable already. */
export function shortened(text: string, columns: number): string {
  if (stringWidth(text) <= columns) return text;
  let kept = "";
  let width = 0;
  for (const character of text) {
    width += stringWidth(character);
    if (width > columns - 1) break;
    kept += character;
  }
  return `${kept}…`;
}

/** The whole text, in lines of at most so many columns; at least one. */
export function inLines(text: string, columns: number): readonly string[] {
  const lines = [""];
  let width = 0;
  for (const character of text) {
    const more = stringWidth(character);
    if (width + more > columns && width > 0) {
      lines.push("");
      width = 0;
    }
    lines[lines.length - 1] += character;
    width += more;
  }
  return lines;
}

export function padded(text: string, columns: number): string {
  return text + " ".repeat(Math.max(0, columns - stringWidth(text)));
}

export function widthOf(text: string): number {
  return stringWidth(text);
}

/** 950 ms, 9.8 s, 4 min 10 s, 3 h 5 min, 12 days. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ${Math.floor((ms % 60_000) / 1_000)} s`;
  if (ms < 172_800_000) return `${Math.floor(ms / 3_600_000)} h ${Math.floor((ms % 3_600_000) / 60_000)} min`;
  return `${Math.floor(ms / 86_400_000)} days`;
}
