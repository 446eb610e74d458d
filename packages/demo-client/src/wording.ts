// How documents, refusals and long texts are put into lines that are read at a glance. Decides nothing else.
import type { Document, WriteResult } from "./worker-protocol.js";

export function shortly(document: Document | null): string {
  const text = JSON.stringify(document);
  return text.length > 70 ? `${text.slice(0, 69)}…` : text;
}

export function refusalText(answer: Extract<WriteResult, { ok: false }>): string {
  if (answer.code === "fencing_token_stale")
    return `412 ${answer.code}: token ${answer.presentedToken}, the fence is ${answer.currentToken}`;
  return `${answer.status ?? "no answer"} ${answer.code}: ${answer.message}`;
}

/** Lines of at most so many characters, broken at spaces where there are any, and anywhere in a word that is longer. */
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
  return Array.from({ length: Math.ceil(word.length / longest) }, (_, index) => word.slice(index * longest, (index + 1) * longest));
}
