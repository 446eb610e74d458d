// The short, stable cause in an `unreachable` ballot for what a connection threw: what it is, then
// what it means where that is not obvious.

const meanings: Readonly<Record<string, string>> = {
  WRONGPASS: "user name or password refused",
  NOAUTH: "the server asks for a password and none was configured",
  NOPERM: "the user lacks a permission the lock needs",
  READONLY: "a replica; the lock needs the address of its master",
  MASTERDOWN: "a replica that lost its master",
  LOADING: "still reading its data from disk",
  MISCONF: "refuses writes because it cannot save",
  OOM: "out of memory (maxmemory) and refuses writes",
  BUSY: "busy with a script",
  NOREPLICAS: "refuses writes because too few replicas follow it",
  CLUSTERDOWN: "its cluster is down",
  NOSCRIPT: "it forgot the lock's script",
  EXHAUSTED: "no token is left",
  FOREIGN: "a token key holds something else",
  WRONGTYPE: "a key of the lock holds something else",
};

/** The cause when only the end of the connection is known. */
export const LOST = "connection lost";

/** The cause of a failure, without secrets. */
export function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return shorten(String(error));
  if (error.name === "MaxRetriesPerRequestError" || /^(Connection is closed|Stream isn't writeable)/.test(error.message)) return LOST;
  if ("code" in error && typeof error.code === "string" && error.code !== "") return error.code;
  return causeOfText(error.message);
}

/**
 * The cause behind an error text of the server, as thrown by ioredis or handed through by a script.
 */
export function causeOfText(message: string): string {
  if (/Protocol error|RESP type/.test(message)) return "garbage reply: not a Redis server";
  // Inside a script Redis words a missing permission differently.
  if (/can't run this command|no permission|can't access/i.test(message)) return explain("NOPERM", message);
  if (message.includes("not an integer")) return explain("FOREIGN", message);
  const word = /\b[A-Z]{3,}\b/g;
  for (const [candidate] of message.matchAll(word)) {
    if (candidate in meanings) return explain(candidate, message);
  }
  return shorten(message);
}

/** The cause where a node voted with other members than those that were asked. */
export function otherGeneration(its: string, ours: string): string {
  const named = (generation: string): string => (generation === "" ? "no generation" : `generation ${Number.parseInt(generation, 10)}`);
  return `GENERATION: it votes in ${named(its)}, and was asked in ${named(ours)}`;
}

function explain(word: string, message: string): string {
  const command = /'([\w|]+)' command/.exec(message)?.[1];
  return `${word}: ${meanings[word]}${word === "NOPERM" && command !== undefined ? ` (+${command})` : ""}`;
}

function shorten(text: string): string {
  return text.length > 120 ? `${text.slice(0, 119)}…` : text;
}
