// The URL of the database: what is wrong with it, in a sentence that never shows the password, and
// the URL of each of its hosts. A list of hosts (postgres://a,b:5433/app, as libpq takes it) is not
// known to pg, which connects to one.

const SHAPE = /^postgres(?:ql)?:\/\/([^/?#]*)([^?#]*)(?:\?([^#]*))?(#.*)?$/i;
const BROKEN_ESCAPE = /%(?![0-9a-f]{2})/i;
const HOST = /^(?:\[[0-9a-f:.%]+\]|[^\s[\]:@,]+)$/i;

const SSL_MODES = ["disable", "no-verify", "prefer", "require", "verify-ca", "verify-full"];
/** All of them mean the same here: a gateway writes. */
const SESSION_ATTRIBUTES = ["any", "read-write", "primary"];

interface Parts {
  readonly userInfo: string;
  readonly hosts: readonly string[];
  readonly path: string;
  readonly query: URLSearchParams;
  readonly fragment: string;
}

/** What is wrong with it, to follow the name of the setting; undefined when it can be used. */
export function databaseUrlFault(text: string): string | undefined {
  const parts = partsOf(text);
  if (parts === undefined) return "must be a postgres:// URL";
  const { userInfo, hosts, path, query, fragment } = parts;
  if (path.includes("@") || fragment !== "" || (query.size > 0 && [...query.keys()].some((key) => key.includes("@"))))
    return "has a /, ? or # in its user name or password: write %2F, %3F or %23";
  if (userInfo.includes("@")) return "has an @ in its user name or password: write %40";
  if (BROKEN_ESCAPE.test(userInfo)) return "has a % in its user name or password that is not followed by two hexadecimal digits: write %25";
  if (BROKEN_ESCAPE.test(path)) return "has a % in the name of its database that is not followed by two hexadecimal digits: write %25";
  return hostsFault(hosts) ?? queryFault(parts);
}

function hostsFault(hosts: readonly string[]): string | undefined {
  for (const [index, host] of hosts.entries()) {
    const where = hosts.length === 1 ? "its host" : `host ${index + 1} of ${hosts.length}`;
    const { name, port } = splitHost(host);
    if (name === "" && (hosts.length > 1 || port !== undefined)) return `names no host for ${where}`;
    // Neither is shown: without an @ they may be the user and the password.
    if (name !== "" && !HOST.test(name)) return `has characters in ${where} that no host name has`;
    if (port !== undefined && !isPort(port)) return `has a port at ${where} that is not a number from 1 to 65535`;
  }
  return undefined;
}

function queryFault({ hosts, query }: Parts): string | undefined {
  const mode = query.get("sslmode");
  if (mode !== null && !SSL_MODES.includes(mode)) return `has an sslmode that is none of ${SSL_MODES.join(", ")}`;
  const attributes = query.get("target_session_attrs");
  if (attributes !== null && !SESSION_ATTRIBUTES.includes(attributes))
    return `has a target_session_attrs that is none of ${SESSION_ATTRIBUTES.join(", ")}: a gateway writes`;
  const named = query.get("host");
  if (named !== null && hosts.some((host) => host !== "")) return "names its host twice, before the database and as the parameter host";
  const ports = query.get("port");
  if (ports === null) return undefined;
  const list = ports.split(",");
  if (!list.every(isPort)) return "has a parameter port that is not a number from 1 to 65535";
  if (list.length > 1 && list.length !== named?.split(",").length) return "has not as many ports as hosts in its parameters";
  return undefined;
}

/**
 * One URL for each host, in the order of the list; a URL with one host stays as it is. The URL must
 * be without fault.
 */
export function databaseUrlsOf(text: string): readonly string[] {
  const parts = partsOf(text);
  if (parts === undefined) return [text];
  const { userInfo, path, query } = parts;
  const named = query.get("host")?.split(",");
  const ports = query.get("port")?.split(",") ?? [];
  const hosts = named?.map((name, index) => join(name, ports[index] ?? ports[0])) ?? parts.hosts;
  if (hosts.length === 1) return [text];
  const others = new URLSearchParams(query);
  for (const name of ["host", "port", "target_session_attrs"]) others.delete(name);
  const user = userInfo === "" ? "" : `${userInfo}@`;
  const search = others.size === 0 ? "" : `?${others}`;
  return hosts.map((host) => `postgres://${user}${host}${path}${search}`);
}

function partsOf(text: string): Parts | undefined {
  const [, authority, path = "", query = "", fragment = ""] = SHAPE.exec(text) ?? [];
  if (authority === undefined) return undefined;
  const end = authority.lastIndexOf("@");
  const hosts = authority.slice(end + 1).split(",");
  return { userInfo: end < 0 ? "" : authority.slice(0, end), hosts, path, query: new URLSearchParams(query), fragment };
}

function splitHost(host: string): { readonly name: string; readonly port: string | undefined } {
  const [, name = host, port] = /^(\[[^\]]*\]|[^:]*)(?::(.*))?$/s.exec(host) ?? [];
  return { name, port };
}

function join(name: string, port: string | undefined): string {
  const literal = name.includes(":") ? `[${name}]` : encodeURIComponent(name);
  return port === undefined ? literal : `${literal}:${port}`;
}

function isPort(text: string): boolean {
  return /^\d{1,5}$/.test(text) && Number(text) >= 1 && Number(text) <= 65_535;
}
