// How documents and refusals are put into a line that is read at a glance. Decides nothing else.
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
