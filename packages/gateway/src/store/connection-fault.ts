// Why no connection to Postgres came about, as a sentence that names the part of the URL to look
// at. Never the password.
import pg from "pg";

class DatabaseConnectionError extends Error {
  override readonly name = "DatabaseConnectionError";
  readonly code: string | undefined;
  constructor(message: string, cause: Error) {
    super(message, { cause });
    this.code = codeOf(cause);
  }
}

const unresolved = new Set(["ENOTFOUND", "EAI_AGAIN", "EAI_NONAME"]);
const unreachable = new Set(["ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH", "ETIMEDOUT", "ECONNRESET", "EACCES", "ENOENT"]);
const certificate = /CERT|SIGNED|ISSUER|ALTNAME/;

/** Errors that are not about the connection come back as they are. */
export function connectionFault(error: unknown, { host, port, user, database }: pg.Client): unknown {
  if (!(error instanceof Error)) return error;
  const code = codeOf(error) ?? "";
  const place = `${host}:${port}`;
  const tell = (sentence: string) => new DatabaseConnectionError(sentence, error);
  if (unresolved.has(code)) return tell(`the host ${host} has no address (${code})`);
  if (error.message === "timeout expired" || /timeout/.test(error.message))
    return tell(`the host and port ${place} did not answer in time (${error.message})`);
  if (error instanceof pg.DatabaseError) {
    if (code.startsWith("28")) return tell(`the user ${user} or its password is not accepted by ${place}: ${error.message} (${code})`);
    if (code === "3D000") return tell(`there is no database ${database} at ${place} (${code})`);
    return error;
  }
  if (/SSL/.test(error.message) && code === "")
    return tell(`sslmode does not fit: ${place} offers no TLS (${error.message}); sslmode=disable does without`);
  if (certificate.test(code))
    return tell(
      `sslmode does not fit: the certificate of ${place} is not accepted (${code}); sslrootcert names the file of another authority`,
    );
  if (unreachable.has(code)) return tell(`nothing answers at host and port ${place} (${code})`);
  return error;
}

/** Where a name has several addresses, Node gives one error for all of them. */
function codeOf(error: Error): string | undefined {
  const { code } = error as NodeJS.ErrnoException;
  if (code !== undefined) return code;
  return error instanceof AggregateError && error.errors[0] instanceof Error ? codeOf(error.errors[0]) : undefined;
}
