// One request on its way to one answer: what is known about it so far.
// Decides nothing; must stay cheap, one is made for every request.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { RequestHeaders } from "./request-headers.js";
import { nobody, type Principal } from "./scopes.js";

export class RequestContext {
  readonly startedAt = performance.now();
  readonly requestId: string;
  /** Who asks; nobody until the credential has been looked at. */
  principal: Principal = nobody;
  /** Bytes of the body that count against the budget of the process until the answer is sent. */
  heldBytes = 0;
  /** For the log: what the request was about, once that is known. */
  resource: string | undefined;
  token: number | undefined;

  constructor(
    readonly request: IncomingMessage,
    readonly response: ServerResponse,
    readonly headers: RequestHeaders,
  ) {
    this.requestId = requestIdOf(headers.requestId);
  }
}

const processName = Math.random().toString(36).slice(2, 8);
let requestCount = 0;
const REQUEST_ID = /^[A-Za-z0-9._:-]{1,128}$/;

/** The caller's own id where it is harmless, so that one id follows a request through several services. */
function requestIdOf(presented: string | undefined): string {
  if (presented !== undefined && REQUEST_ID.test(presented)) return presented;
  requestCount += 1;
  return `${processName}-${requestCount.toString(36)}`;
}
