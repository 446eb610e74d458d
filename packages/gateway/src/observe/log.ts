// The log: one line of JSON per refusal, failure and change of state; every request only at debug
// level. A line names request, resource, token and outcome, never a credential or a document.
import { Socket } from "node:net";
import type { Writable } from "node:stream";
import { type DestinationStream, type Logger, pino } from "pino";

export type Log = Logger;

export function createLog(level: string): Log {
  return logTo(standardOutput(), level);
}

function logTo(destination: DestinationStream, level: string): Log {
  return pino({ level, base: { service: "palisade-gateway" }, timestamp: millisecond }, destination);
}

let [lastMs, lastText] = [0, ""];

/** Lines of one millisecond share its text, which is a third of what a line costs. */
function millisecond(): string {
  const now = Date.now();
  if (now !== lastMs) [lastMs, lastText] = [now, `,"time":"${new Date(now).toISOString()}"`];
  return lastText;
}

const STDOUT = 1;
/** Characters beyond which lines are written before the turn ends. */
const MAX_GATHERED = 64 * 1_024;
let output: DestinationStream | undefined;

/**
 * The lines of one turn of the event loop in one write: a write for each would cost a flood of
 * refusals as much as all else that is done for its log.
 */
function standardOutput(): DestinationStream {
  if (output !== undefined) return output;
  // Not by fstatSync: after it has seen a pipe, Node 20 resolves no symbolic link on the way to a module
  // (realpathSync looks at what was left in a buffer that both use).
  const mayBeUnread = process.stdout instanceof Socket && !process.stdout.isTTY;
  const destination = mayBeUnread ? unblocked(process.stdout) : pino.destination({ dest: STDOUT, sync: true });
  let gathered = "";
  const flush = (): void => {
    const lines = gathered;
    gathered = "";
    if (lines !== "") destination.write(lines);
  };
  process.on("exit", flush);
  output = {
    write(line) {
      if (gathered === "") setImmediate(flush);
      gathered += line;
      if (gathered.length > MAX_GATHERED) flush();
    },
  };
  return output;
}

/** Of lines that wait for a reader: a thousand of them, and little beside the heap. */
const MAX_UNREAD_BYTES = 256 * 1_024;

/**
 * A pipe or socket whose reader may stand still, or be gone: it is never waited for. What does not
 * fit is dropped and counted until all before it was read, and then the log says how much that was.
 */
function unblocked(stream: Writable): DestinationStream {
  let dropped = 0;
  const destination: DestinationStream = {
    write(lines) {
      if (dropped === 0 && stream.writableLength <= MAX_UNREAD_BYTES) stream.write(lines);
      else dropped += lines.split("\n").length - 1;
    },
  };
  stream.on("error", () => undefined); // Nobody reads any more, and nobody could be told.
  stream.on("drain", () => {
    if (dropped === 0) return;
    const count = dropped;
    dropped = 0;
    logTo(destination, "warn").warn({ dropped: count }, "lines of the log were dropped: nobody read them");
  });
  return destination;
}

/**
 * The W3C trace context of the request, so that a log line is found from a trace and the other way
 * round.
 */
const traceparent = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$/;

export function traceOf(field: string | undefined): { readonly traceId: string; readonly parentSpanId: string } | undefined {
  const [, traceId, parentSpanId] = traceparent.exec(field ?? "") ?? [];
  return traceId === undefined || parentSpanId === undefined ? undefined : { traceId, parentSpanId };
}

const loud = new Set([
  "fencing_token_stale",
  "fencing_token_unissued",
  "outcome_unknown",
  "unavailable",
  "verification_unavailable",
  "internal",
]);

/**
 * `outcome` is ok, or the code of a problem. A refusal is worth a line: a stale token means that a
 * holder lost its lease without noticing.
 */
export function levelOf(outcome: string): "debug" | "info" | "warn" {
  if (outcome === "ok" || outcome === "not_found") return "debug";
  return loud.has(outcome) ? "warn" : "info";
}
