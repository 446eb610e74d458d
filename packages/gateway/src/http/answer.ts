// A successful answer, and how it is written to the wire. JSON arrives here as finished text: a document is never parsed and printed again on its way out.
import type { ServerResponse } from "node:http";
import { formatETag } from "./etag.js";
import { success } from "./problem.js";

export class Answer {
  constructor(
    readonly status: number,
    readonly body: string | undefined,
    /** The stored revision and fence, for the ETag and Fencing-Token headers. */
    readonly rev: number | undefined = undefined,
    readonly token: number | undefined = undefined,
    readonly extraHeaders: readonly string[] | undefined = undefined,
  ) {}
}

export function sendAnswer(response: ServerResponse, answer: Answer, requestId: string): void {
  const headers: string[] = ["X-Request-Id", requestId, "Cache-Control", "private, no-cache"];
  // A revision of 0 is a resource that was sealed and never written: it has a fence, but nothing an entity tag could stand for.
  if (answer.rev !== undefined && answer.rev > 0) headers.push("ETag", formatETag(answer.rev));
  if (answer.token !== undefined) headers.push("Fencing-Token", String(answer.token));
  if (answer.extraHeaders !== undefined) headers.push(...answer.extraHeaders);
  if (answer.body !== undefined) {
    headers.push("Content-Type", "application/json", "Content-Length", String(Buffer.byteLength(answer.body)));
  } else if (answer.status === success.ok) {
    headers.push("Content-Length", "0");
  }
  response.writeHead(answer.status, headers);
  response.end(answer.body);
}
