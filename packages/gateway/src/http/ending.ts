// When the last answer of a connection ends. To end it before the client has sent its whole request resets the connection, and a client that is still writing then
// fails without having read the answer. Decides nothing else; must not wait for a client that was never told to go on.
import type { ServerResponse } from "node:http";
import { isBeingDiscarded } from "./connection-state.js";

/** The header has been written, and with it the length: to the client the answer is complete, whenever it ends. */
export function endResponse(response: ServerResponse, body: string | undefined): void {
  const { req: request, shouldKeepAlive } = response;
  if (shouldKeepAlive || request.complete || !isBeingDiscarded(request)) {
    response.end(body);
    return;
  }
  response.flushHeaders();
  if (body !== undefined) response.write(body);
  request.once("end", () => response.end());
}
