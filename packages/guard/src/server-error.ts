// What Postgres answered, in whatever error the driver made of it. Judged by SQLSTATE and severity:
// a class of pg says nothing about an error that another copy of pg threw, and drizzle, TypeORM and
// Prisma wrap what they were given.

export interface ServerError {
  /** The SQLSTATE. */
  readonly code: string;
  readonly severity: string;
  readonly message: string;
  readonly detail?: string | undefined;
}

const SQLSTATE = /^[0-9A-Z]{5}$/;
/** drizzle, TypeORM, Prisma. */
const wrappers = ["cause", "driverError", "meta", "driverAdapterError"];
const MAX_DEPTH = 6;

/** Undefined for an error that is no answer of Postgres, such as a lost connection. */
export function serverErrorOf(error: unknown, depth = 0): ServerError | undefined {
  if (typeof error !== "object" || error === null || depth > MAX_DEPTH) return undefined;
  const fields = error as Readonly<Record<string, unknown>>;
  // Prisma's adapter keeps an answer with a severity under other names, some without the severity.
  const { originalCode, originalMessage, detail } = fields;
  const { code = originalCode, message = originalMessage, severity = originalCode === undefined ? undefined : "ERROR" } = fields;
  // Node's own codes, such as EPIPE, may look like a SQLSTATE; they have no severity.
  if (typeof code === "string" && SQLSTATE.test(code) && typeof severity === "string")
    return { code, severity, message: String(message), detail: typeof detail === "string" ? detail : undefined };
  for (const wrapper of wrappers) {
    const found = serverErrorOf(fields[wrapper], depth + 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

/**
 * SQLSTATEs that end the session: whether the commit came first is unknown. A connection pooler
 * that loses its server answers 08 as well.
 */
const SESSION_ENDS = /^(08|57P)/;
/**
 * Internal and system errors abort only the transaction unless they are FATAL; but the severity may
 * come in the server's language.
 */
const DOUBTFUL = /^(XX|58|F0)/;

/** Whether this answer leaves open if what it is about was committed. */
export function mayBeCommitted({ code, severity }: { readonly code: string; readonly severity: string | undefined }): boolean {
  return SESSION_ENDS.test(code) || severity === "FATAL" || severity === "PANIC" || (DOUBTFUL.test(code) && severity !== "ERROR");
}
