// The URL of the database: what is wrong with it, and why no connection came about with it, in
// sentences that name the part to look at and never show the password. It has one host: an address
// that leads to the primary is HAProxy's work, or that of a service or of DNS (deploy/ha).
import type pg from "pg";
import { serverErrorOf } from "./server-error.js";

const SHAPE = /^postgres(?:ql)?:\/\/([^/?#]*)([^?#]*)(?:\?([^#]*))?(#.*)?$/i;
const BROKEN_ESCAPE = /%(?![0-9a-f]{2})/i;
const HOST = /^(?:\[[0-9a-f:.%]+\]|[^\s[\]:@,]+)$/i;

const SSL_MODES = ["disable", "no-verify", "prefer", "require", "verify-ca", "verify-full"];
const SEVERAL_HOSTS =
  "names several hosts and must name one: the address of HAProxy, a service or a DNS name that leads to the primary (deploy/ha shows it)";

/** What is wrong with it, to follow the name of the setting; undefined when it can be used. */
export function databaseUrlFault(text: string): string | undefined {
  const [, authority, path = "", search = "", fragment = ""] = SHAPE.exec(text) ?? [];
  if (authority === undefined) return "must be a postgres:// URL";
  const [userInfo, host] = [authority.slice(0, Math.max(0, authority.lastIndexOf("@"))), authority.slice(authority.lastIndexOf("@") + 1)];
  const query = new URLSearchParams(search);
  if (path.includes("@") || fragment !== "" || [...query.keys()].some((key) => key.includes("@")))
    return "has a /, ? or # in its user name or password: write %2F, %3F or %23";
  if (userInfo.includes("@")) return "has an @ in its user name or password: write %40";
  if (BROKEN_ESCAPE.test(userInfo)) return "has a % in its user name or password that is not followed by two hexadecimal digits: write %25";
  if (BROKEN_ESCAPE.test(path)) return "has a % in the name of its database that is not followed by two hexadecimal digits: write %25";
  return hostFault(host) ?? queryFault(query, host);
}

function hostFault(host: string): string | undefined {
  if (host.includes(",")) return SEVERAL_HOSTS;
  const [, name = host, port] = /^(\[[^\]]*\]|[^:]*)(?::(.*))?$/s.exec(host) ?? [];
  if (name === "" && port !== undefined) return "names no host";
  // Neither is shown: without an @ they may be the user and the password.
  if (name !== "" && !HOST.test(name)) return "has characters in its host that no host name has";
  return port === undefined || isPort(port) ? undefined : "has a port at its host that is not a number from 1 to 65535";
}

function queryFault(query: URLSearchParams, host: string): string | undefined {
  const mode = query.get("sslmode");
  if (mode !== null && !SSL_MODES.includes(mode)) return `has an sslmode that is none of ${SSL_MODES.join(", ")}`;
  const [named, port] = [query.get("host"), query.get("port")];
  if (named?.includes(",")) return SEVERAL_HOSTS;
  if (named !== null && host !== "") return "names its host twice, before the database and as the parameter host";
  return port === null || isPort(port) ? undefined : "has a parameter port that is not a number from 1 to 65535";
}

function isPort(text: string): boolean {
  return /^\d{1,5}$/.test(text) && Number(text) >= 1 && Number(text) <= 65_535;
}

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
function connectionFault(error: unknown, { host, port, user, database }: pg.Client): unknown {
  if (!(error instanceof Error)) return error;
  const code = codeOf(error) ?? "";
  const place = `${host}:${port}`;
  const tell = (sentence: string) => new DatabaseConnectionError(sentence, error);
  if (unresolved.has(code)) return tell(`the host ${host} has no address (${code})`);
  if (error.message === "timeout expired" || /timeout/.test(error.message))
    return tell(`the host and port ${place} did not answer in time (${error.message})`);
  if (serverErrorOf(error) !== undefined) {
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

/**
 * A connection of its own for one command of the program. `timeoutMs`: for connecting and for each
 * answer; otherwise a server that is silent is waited for.
 */
export async function withClient<T>(databaseUrl: string, work: (client: pg.Client) => Promise<T>, timeoutMs?: number): Promise<T> {
  const fault = databaseUrlFault(databaseUrl);
  if (fault !== undefined) throw new TypeError(`the URL of the database ${fault}`);
  const { default: driver } = await import("pg").catch((cause: NodeJS.ErrnoException) => {
    if (cause.code !== "ERR_MODULE_NOT_FOUND") throw cause;
    throw new Error(`the driver pg is not installed here: npm install pg, or run what npx @palisade/guard sql prints`, { cause });
  });
  const client = new driver.Client({
    connectionString: databaseUrl,
    application_name: "palisade-migrate",
    connectionTimeoutMillis: timeoutMs ?? 0,
    query_timeout: timeoutMs,
  });
  client.on("error", () => {}); // A lost connection also rejects the statement that waits on it.
  await client.connect().catch((error: unknown) => {
    throw connectionFault(error, client);
  });
  try {
    return await work(client);
  } finally {
    const ended = client.end();
    if (timeoutMs === undefined) await ended;
  }
}
