// A successful answer, and how it is written to the wire. JSON arrives here as finished text: a document is never parsed and printed again on its way out.
import type { ServerResponse } from "node:http";
import { endResponse } from "./ending.js";
import { formatETag } from "./etag.js";
import { success } from "./problem.js";

/** What the ETag and Fencing-Token headers say, and further headers as name, value, name, value. */
export interface Stored {
  readonly rev?: number | undefined;
  readonly token?: number | undefined;
  readonly headers?: readonly string[] | undefined;
}

const nothingStored: Stored = {};

export class Answer {
  constructor(
    readonly status: number,
    readonly body: string | undefined,
    readonly stored: Stored = nothingStored,
  ) {}
}

export function sendAnswer(response: ServerResponse, answer: Answer, requestId: string): void {
  const headers: string[] = ["X-Request-Id", requestId, "Cache-Control", "private, no-cache"];
  const { rev, token, headers: further } = answer.stored;
  // A revision of 0 is a resource that was sealed and never written: it has a fence, but nothing an entity tag could stand for.
  if (rev !== undefined && rev > 0) headers.push("ETag", formatETag(rev));
  if (token !== undefined) headers.push("Fencing-Token", String(token));
  if (further !== undefined) headers.push(...further);
  if (answer.body !== undefined) {
    headers.push("Content-Type", "application/json", "Content-Length", String(Buffer.byteLength(answer.body)));
  } else if (answer.status === success.ok) {
    headers.push("Content-Length", "0");
  }
  response.writeHead(answer.status, headers);
  endResponse(response, answer.body);
}
