// Text as the outputs need it: coloured on a terminal, wrapped to a width.
import picocolors from "picocolors";

/** Piped output stays plain, also in CI, where picocolors would colour it. */
function isColoured(stream: { readonly isTTY?: boolean }): boolean {
  const { NO_COLOR, FORCE_COLOR, TERM } = process.env;
  if (NO_COLOR) return false;
  if (FORCE_COLOR) return FORCE_COLOR !== "0";
  return stream.isTTY === true && TERM !== "dumb";
}

export type Paint = (text: string) => string;

/** For standard output. */
export const paint = picocolors.createColors(isColoured(process.stdout));
/** For standard error. */
export const errorPaint = picocolors.createColors(isColoured(process.stderr));

/** Lines of at most so many characters, broken at spaces; a longer word is cut. */
export function wrapped(text: string, longest: number): readonly string[] {
  const lines: string[] = [""];
  for (const word of text.split(" ").flatMap((whole) => piecesOf(whole, longest))) {
    const line = lines.at(-1) ?? "";
    if (line !== "" && line.length + 1 + word.length > longest) lines.push(word);
    else lines[lines.length - 1] = line === "" ? word : `${line} ${word}`;
  }
  return lines;
}

function piecesOf(word: string, longest: number): readonly string[] {
  if (word.length <= longest) return [word];
  const count = Math.ceil(word.length / longest);
  return Array.from({ length: count }, (_, index) => word.slice(index * longest, (index + 1) * longest));
}
