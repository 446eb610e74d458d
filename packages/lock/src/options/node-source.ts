// One entry of `nodes`: what it may be, the server that it leads to, and the same way to another
// address. Read before any I/O: what ioredis would take for another server (localhost, mostly) or
// would refuse only when it connects is refused here. No message shows a value that may be a secret.
import type { RedisOptions } from "ioredis";
import type { ServerSource } from "../protocol/node.js";
import { shown } from "./option.js";

type Fields = Readonly<Record<string, unknown>>;

/** What is read of an instance: where its server is, and who asks. How it is asked the lock decides. */
const READ_OF_AN_INSTANCE = ["host", "port", "path", "family", "tls", "username", "password", "db", "Connector"] as const;

/**
 * The servers that a caller named. TypeError or RangeError if one entry is neither a URL of Redis,
 * nor ioredis options that name a server, nor an ioredis instance; RangeError if two lead to the same
 * server.
 */
export function readSources(sources: readonly unknown[]): readonly ServerSource[] {
  const seen = new Map<string, number>();
  // Not map, which skips holes.
  return Array.from(sources, (given, index) => {
    const source = readSource(given, `nodes[${index}]`);
    const address = addressOf(source);
    const twin = seen.get(address);
    if (twin !== undefined) throw new RangeError(`nodes[${twin}] and nodes[${index}] are both ${address}: one server must not vote twice`);
    seen.set(address, index);
    return source;
  });
}

export function readSource(source: unknown, name: string): ServerSource {
  if (typeof source === "string") return readUrl(source, name);
  if (typeof source !== "object" || source === null || Array.isArray(source))
    throw new TypeError(`${name} must be a Redis URL, ioredis options or an ioredis instance, not ${shown(source)}`);
  if (source instanceof URL) throw new TypeError(`${name} must be the text of a URL, not a URL object: give its href`);
  return "duplicate" in source ? readInstance(source as Fields, name) : readOptions(source as Fields, name);
}

function readUrl(text: string, name: string): string {
  // The text may hold a password: no message shows it.
  if (!/^rediss?:\/\//i.test(text)) throw new TypeError(`${name}: a node's URL must begin with redis:// or rediss://`);
  if (!URL.canParse(text)) {
    const withoutPort = text.replace(/:\d+(?=[/?#]|$)/, "");
    const isPort = withoutPort !== text && URL.canParse(withoutPort);
    throw new TypeError(`${name}: ${isPort ? "the port of a node's URL must be from 1 to 65535" : "a node's URL is malformed"}`);
  }
  const { pathname, searchParams } = new URL(text);
  if (!/^\/?[0-9]*$/.test(pathname)) throw new TypeError(`${name}: what follows the / of a node's URL must be the number of a database`);
  checkPrefix(searchParams.get("keyPrefix"), name);
  // ioredis would go there, and not to the address by which nodes are told apart.
  for (const field of ["host", "port", "path", "sentinels"])
    if (searchParams.has(field)) throw new TypeError(`${name}: a node's URL must name its server before the ?, not by ${field}`);
  return text;
}

/**
 * Not instanceof: the user's ioredis may be another copy than ours, of another version. The instance
 * itself is never used, and stays the user's.
 */
function readInstance({ options, status, isCluster }: Fields, name: string): RedisOptions {
  if (isCluster === true)
    throw new TypeError(`${name} is a cluster, and a node is one server: name one server that is no part of a cluster`);
  if (typeof options !== "object" || options === null || typeof status !== "string")
    throw new TypeError(`${name} is a client, but not one of ioredis: give its URL, or its options`);
  const all = readOptions(options as Fields, name);
  const given = READ_OF_AN_INSTANCE.filter((field) => all[field] !== undefined && all[field] !== null);
  return Object.fromEntries(given.map((field) => [field, all[field]]));
}

function readOptions(options: Fields, name: string): RedisOptions {
  const { host, port, path, sentinels, db } = options;
  if (sentinels !== undefined && sentinels !== null)
    throw new TypeError(`${name} is a group under sentinels, and a node is one server: name the master itself`);
  if ([host, port, path].every((field) => field === undefined || field === null))
    throw new TypeError(`${name} names no server: give host and port, or path`);
  for (const field of ["host", "path", "username", "password"]) {
    const value = options[field];
    if (value !== undefined && value !== null && typeof value !== "string")
      throw new TypeError(`${name}.${field} must be a string, not a ${typeof value}`);
  }
  if (host === "" || path === "") throw new TypeError(`${name} names no server: ${host === "" ? "host" : "path"} is empty`);
  checkPrefix(options.keyPrefix, name);
  checkNumber(port, `${name}.port`, { min: 1, max: 65_535 });
  checkNumber(db, `${name}.db`, { min: 0, max: 2_147_483_647 });
  return options as RedisOptions;
}

/** Dropped, two systems that a prefix kept apart would be one. */
function checkPrefix(keyPrefix: unknown, name: string): void {
  if (keyPrefix === undefined || keyPrefix === null || keyPrefix === "") return;
  throw new TypeError(
    `${name} has the keyPrefix ${JSON.stringify(keyPrefix)}, and the lock's keys have none: use the option namespace, and an instance without it`,
  );
}

/** ioredis takes digits for a number, as they come from the environment. */
function checkNumber(value: unknown, name: string, { min, max }: { readonly min: number; readonly max: number }): void {
  if (value === undefined || value === null) return;
  const isWritten = typeof value === "string" && /^[0-9]+$/.test(value);
  if (typeof value !== "number" && !isWritten) throw new TypeError(`${name} must be a number, not ${shown(value)}`);
  const number = Number(value);
  if (!Number.isInteger(number) || number < min || number > max)
    throw new RangeError(`${name} must be a whole number from ${min} to ${max}, not ${number}`);
}

/** Where the source leads, without credentials: host:port, or a socket's path. */
export function addressOf(source: ServerSource): string {
  if (typeof source !== "string") return source.path ? source.path : `${(source.host ?? "localhost").toLowerCase()}:${source.port ?? 6379}`;
  const { hostname, port } = new URL(source);
  return `${hostname === "" ? "localhost" : hostname.toLowerCase()}:${port === "" ? 6379 : port}`;
}

/**
 * The same way (user, password, TLS, database) to another address; undefined for what is no host and
 * port, such as a socket: there only the user can say how.
 */
export function sourceAt(address: string, like: ServerSource): ServerSource | undefined {
  const [, host, port] = /^(.+):(\d+)$/.exec(address) ?? [];
  if (host === undefined || port === undefined || /[ /]/.test(host)) return undefined;
  if (typeof like === "string") {
    const url = new URL(like);
    url.host = `${host}:${port}`;
    return url.href;
  }
  const { path: _, ...options } = like;
  return { ...options, host: host.replace(/^\[(.*)\]$/, "$1"), port: Number(port) };
}
