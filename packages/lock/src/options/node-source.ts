// One entry of `nodes`: what it may be, and the address it leads to. Checked before any I/O: what
// ioredis would take for another server (localhost, mostly) or would refuse only when it connects
// is refused here. No message shows a value that may be a secret.
import type { Cluster, Redis, RedisOptions } from "ioredis";
import type { IoredisInstance, NodeSource } from "../protocol/node-source.js";
import { shown } from "./option.js";

export type { NodeSource };

export type Client = Redis | Cluster;

type Fields = Readonly<Record<string, unknown>>;

/**
 * TypeError or RangeError if it is neither a URL of Redis, nor ioredis options that name a server,
 * nor an ioredis instance.
 */
export function checkSource(source: unknown, name: string): void {
  if (typeof source === "string") checkUrl(source, name);
  else if (typeof source === "object" && source !== null && !Array.isArray(source)) checkObject(source as Fields, name);
  else throw new TypeError(`${name} must be a Redis URL, ioredis options or an ioredis instance, not ${shown(source)}`);
}

function checkUrl(text: string, name: string): void {
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
}

function checkObject(source: Fields, name: string): void {
  if (source instanceof URL) throw new TypeError(`${name} must be the text of a URL, not a URL object: give its href`);
  if (typeof source.duplicate === "function") {
    // Other clients have that method, too.
    if (typeof source.status !== "string" || typeof source.call !== "function")
      throw new TypeError(`${name} is a client, but not one of ioredis: give its URL instead`);
    const { options } = source as { readonly options?: Fields & { readonly redisOptions?: Fields } };
    checkPrefix(options?.keyPrefix || options?.redisOptions?.keyPrefix, name);
    return;
  }
  checkOptions(source, name);
}

function checkOptions(options: Fields, name: string): void {
  const { host, port, path, sentinels, db } = options;
  if ([host, port, path, sentinels].every((field) => field === undefined || field === null))
    throw new TypeError(`${name} names no server: give host and port, path, or sentinels`);
  for (const field of ["host", "path", "username", "password"]) {
    const value = options[field];
    if (value !== undefined && value !== null && typeof value !== "string")
      throw new TypeError(`${name}.${field} must be a string, not a ${typeof value}`);
  }
  if (host === "" || path === "") throw new TypeError(`${name} names no server: ${host === "" ? "host" : "path"} is empty`);
  checkPrefix(options.keyPrefix, name);
  checkNumber(port, `${name}.port`, { min: 1, max: 65_535 });
  checkNumber(db, `${name}.db`, { min: 0, max: 2_147_483_647 });
  if (sentinels !== undefined && sentinels !== null) checkSentinels(options, name);
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

function checkSentinels({ sentinels, name: group }: Fields, name: string): void {
  if (!Array.isArray(sentinels) || sentinels.length === 0)
    throw new TypeError(`${name}.sentinels must be an array with the address of at least one`);
  if (typeof group !== "string" || group === "") throw new TypeError(`${name}.name must be the name of the group that the sentinels watch`);
}

export function isInstance(source: Exclude<NodeSource, string>): source is IoredisInstance {
  // Not instanceof: the user's ioredis may be another copy than ours.
  return typeof (source as { duplicate?: unknown }).duplicate === "function";
}

/** ioredis 4 and 5 differ from 6 in nothing that the lock uses. */
export function clientOf(source: IoredisInstance): Client {
  return source as unknown as Client;
}

export function isCluster(client: Client): client is Cluster {
  return client.isCluster;
}

/**
 * A cluster or a group under sentinels: another server may take the place of the one that was
 * admitted.
 */
export function hasFailover(source: NodeSource): boolean {
  if (typeof source === "string") return false;
  if (!isInstance(source)) return Boolean(source.sentinels);
  const client = clientOf(source);
  return isCluster(client) || Boolean(client.options.sentinels);
}

/** Where the source leads, without credentials: host:port, or a socket's path. */
export function addressOf(source: NodeSource): string {
  if (typeof source === "string") return addressOfUrl(source);
  if (!isInstance(source)) return addressOfOptions(source);
  const client = clientOf(source);
  if (!isCluster(client)) return addressOfOptions(client.options);
  const [first] = Reflect.get(client, "startupNodes") as readonly unknown[];
  if (typeof first === "string") return `cluster ${addressOfUrl(first)}`;
  return typeof first === "object" && first !== null ? `cluster ${addressOfOptions(first)}` : `cluster localhost:${String(first)}`;
}

function addressOfUrl(text: string): string {
  // The text may hold a password: no message shows it.
  if (!/^rediss?:\/\//i.test(text)) throw new TypeError("a node's URL must begin with redis:// or rediss://");
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw new TypeError("a node's URL is malformed");
  }
  return `${url.hostname === "" ? "localhost" : url.hostname.toLowerCase()}:${url.port === "" ? 6379 : url.port}`;
}

function addressOfOptions(given: RedisOptions): string {
  if (given.sentinels) return `sentinel ${given.name}`;
  return given.path ? given.path : `${(given.host ?? "localhost").toLowerCase()}:${given.port ?? 6379}`;
}

/**
 * The same way (user, password, TLS, database) to another address; undefined where only the user
 * can say how: sentinels, clusters, sockets.
 */
export function sourceAt(address: string, like: NodeSource): NodeSource | undefined {
  const [, host, port] = /^(.+):(\d+)$/.exec(address) ?? [];
  if (host === undefined || port === undefined || /[ /]/.test(host) || hasFailover(like)) return undefined;
  if (typeof like === "string") {
    const url = new URL(like);
    url.host = `${host}:${port}`;
    return url.href;
  }
  const { path: _, ...options } = isInstance(like) ? (clientOf(like) as Redis).options : like;
  return { ...options, host: host.replace(/^\[(.*)\]$/, "$1"), port: Number(port) };
}

/**
 * The addresses of all sources; TypeError if one is none, RangeError if two lead to the same place.
 */
export function checkedAddresses(sources: readonly NodeSource[]): readonly string[] {
  const seen = new Map<string, number>();
  return sources.map((source, index) => {
    if ((typeof source !== "string" && typeof source !== "object") || source === null) {
      throw new TypeError(`nodes[${index}] must be a Redis URL, ioredis options or an ioredis instance, not ${shown(source)}`);
    }
    const address = addressAt(source, index);
    const twin = seen.get(address);
    if (twin !== undefined) {
      throw new RangeError(`nodes[${twin}] and nodes[${index}] are both ${address}: one server must not vote twice`);
    }
    seen.set(address, index);
    return address;
  });
}

function addressAt(source: NodeSource, index: number): string {
  try {
    return addressOf(source);
  } catch (error) {
    throw new TypeError(`nodes[${index}]: ${error instanceof Error ? error.message : String(error)}`);
  }
}
