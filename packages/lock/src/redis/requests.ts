// What is sent to a node and what comes back: per kind of request the order of KEYS and ARGV and
// the shapes of replies. The Lua files say the same from the other side. At the end the scripts
// themselves, as one server is taught them.
import { createHash } from "node:crypto";
import type { ExtendBallot, GrantBallot, Held, InspectBallot, RaiseBallot, ReleaseBallot, SealBallot } from "../protocol/ballot.js";
import type { ExtendQuestion, GrantQuestion, Ownership, ReleaseQuestion } from "../protocol/node.js";
import { MAX_TOKEN } from "../protocol/token.js";
import {
  claimScript,
  extendScript,
  grantScript,
  healScript,
  inspectScript,
  raiseScript,
  releaseScript,
  sealScript,
} from "./lua.generated.js";
import { type NodeStatus, paddedRunId } from "./record.js";
import { GarbageReply, type Keys } from "./script-call.js";

const LONGEST_MS = 2 ** 31 - 1;

/** The lists of one script call while they are being filled. */
export interface CallText {
  readonly keys: string[];
  readonly args: string[];
}

/** What a call answered. */
export interface CallReply {
  /** The admission record (record.ts); empty: not admitted; undefined: not asked for. */
  readonly record: string | undefined;
  /** One for each request; null where the node is not admitted. */
  readonly replies: readonly unknown[];
}

/** The node that answered, and its epoch at that moment. */
export interface Heard {
  readonly node: string;
  readonly epoch: string;
}

/** The scripts of requests, by the names of their files. */
export type RequestName = "grant" | "claim" | "seal" | "extend" | "heal" | "release" | "inspect" | "raise";

/**
 * One kind of request: how it is written and how its reply is read. `read` is not called for the
 * replies that every kind shares (quarantined, failed).
 */
export interface RequestKind<Question, Ballot> {
  readonly name: RequestName;
  /** All requests of one call have equally many. */
  resourcesOf(question: Question): number;
  /** The argument that all requests of one call share; undefined where there is none. */
  sharedBy(question: Question): number | undefined;
  /** Of the requests of one call the highest is sent; undefined where there is none. */
  leastOf?(question: Question): number;
  /** The ticket's name behind the inbox, which all requests of one call share. */
  ticketOf?(question: Question): string;
  write(call: CallText, keys: Keys, question: Question): void;
  read(heard: Heard, reply: unknown, question: Question): Ballot;
}

export type RaiseQuestion = {
  readonly resource: string;
  readonly token: number;
  readonly remove: "holder" | "nothing";
};
export type SealQuestion = Ownership & { readonly token: number };
export type HealQuestion = GrantQuestion & { readonly token: number };

/** One call for requests of a kind, with equally many resources, that share what is shared. */
export function writeCall<Q, B>(
  kind: RequestKind<Q, B>,
  keys: Keys,
  asked: readonly [{ readonly question: Q }, ...{ readonly question: Q }[]],
): CallText {
  const shared = kind.sharedBy(asked[0].question);
  const call: CallText = {
    keys: kind.name === "release" ? [] : [keys.node],
    args: shared === undefined ? [] : [String(shared)],
  };
  if (kind.leastOf !== undefined) {
    let least = 0;
    for (const { question } of asked) least = Math.max(least, kind.leastOf(question));
    call.args.push(String(least));
  }
  if (kind.ticketOf !== undefined) call.args.push(keys.inbox + kind.ticketOf(asked[0].question));
  for (const { question } of asked) kind.write(call, keys, question);
  return call;
}

/**
 * A bare number answers a single request and confirms the record that was sent; a list carries the
 * record.
 */
export function readCall(reply: unknown, requests: number, sentRecord: string | undefined): CallReply {
  if (typeof reply === "number" && requests === 1) return { record: sentRecord, replies: [reply] };
  if (reply === "") return { record: "", replies: new Array(requests).fill(null) };
  const [record, ...replies] = list(reply, requests + 1);
  // A release does not read it.
  return { record: record === "-" ? undefined : text(record), replies };
}

function name(call: CallText, keys: Keys, resources: readonly string[]): void {
  for (const resource of resources) call.keys.push(keys.lock(resource), keys.token(resource));
}

const ofLease = ({ resources }: Ownership): number => resources.length;
const ttlOf = ({ ttlMs }: { readonly ttlMs: number }): number => ttlMs;
const nothing = (): undefined => undefined;

function integer(reply: unknown, least: number): number {
  if (typeof reply === "number" && Number.isInteger(reply) && reply >= least && reply <= MAX_TOKEN) return reply;
  throw new GarbageReply(reply);
}

function text(reply: unknown): string {
  if (typeof reply === "string") return reply;
  throw new GarbageReply(reply);
}

function list(reply: unknown, length: number): readonly unknown[] {
  if (Array.isArray(reply) && reply.length === length) return reply;
  throw new GarbageReply(reply);
}

/**
 * At the end of a lock's value: a request was refused for it, or its holder had waited, so its
 * release has to look for waiters.
 */
const HAS_WAITERS = "\n";

/**
 * The label of a lock value `owner|label`. A value of another form is a key that the lock did not
 * make; it is shown whole.
 */
function holderOf(reply: unknown): string {
  const value = text(reply);
  return value.slice(value.indexOf("|") + 1, value.endsWith(HAS_WAITERS) ? -HAS_WAITERS.length : undefined);
}

/** Of a lock that is free and reserved for a process that waits (see queue.lua). */
const isReserved = (value: string): boolean => value.startsWith("~");

/** Tells owners apart without showing their secrets. */
function fingerprintOf(reply: unknown): string {
  const [secret = ""] = text(reply).split("|", 1);
  return createHash("sha256").update(secret).digest("base64url").slice(0, 8);
}

/**
 * PTTL: −1 is a key without an end, which the lock never makes; the longest time that a timer can
 * wait stands for it.
 */
export function remainingOf(reply: unknown): number {
  const ms = integer(reply, -2);
  return ms === -1 ? LONGEST_MS : Math.max(0, ms);
}

export const grant: RequestKind<GrantQuestion, GrantBallot> = {
  name: "grant",
  resourcesOf: ofLease,
  sharedBy: ttlOf,
  leastOf: ({ leastToken = 0 }) => leastToken,
  write(call, keys, { resources, owner, label }) {
    name(call, keys, resources);
    call.args.push(`${owner}|${label}`);
  },
  read({ node, epoch }, reply, { resources }) {
    if (typeof reply === "number") return { kind: "granted", node, token: integer(reply, 1), epoch };
    return readHeld(node, list(reply, 3), { reply, resources });
  },
};

function readHeld(node: string, [index, value, pttl]: readonly unknown[], asked: { reply: unknown; resources: readonly string[] }): Held {
  const resource = asked.resources[integer(index, 1) - 1];
  if (resource === undefined) throw new GarbageReply(asked.reply);
  const held = { kind: "held", node, resource, holder: holderOf(value), remainingMs: remainingOf(pttl) } as const;
  return isReserved(text(value)) ? { ...held, isReserved: true } : held;
}

/** A grant to a process that waits, or a ticket. */
export const claim: RequestKind<GrantQuestion, GrantBallot> = {
  ...grant,
  name: "claim",
  ticketOf: ({ wait }) => wait?.ticket ?? "",
  write(call, keys, { resources, owner, label, wait }) {
    name(call, keys, resources);
    call.args.push(`${owner}|${label}${HAS_WAITERS}`, wholeMs(wait?.sinceMs), wholeMs(wait?.waitedMs));
  },
  read(heard, reply, question) {
    if (typeof reply === "number") return grant.read(heard, reply, question);
    const [index, value, pttl, ticket] = list(reply, 4);
    const held = readHeld(heard.node, [index, value, pttl], { reply, resources: question.resources });
    return integer(ticket, 0) === 1 ? { ...held, hasTicket: true } : held;
  },
};

function wholeMs(ms = 0): string {
  return Math.max(0, ms).toFixed(0);
}

export const seal: RequestKind<SealQuestion, SealBallot> = {
  name: "seal",
  resourcesOf: ofLease,
  sharedBy: nothing,
  write(call, keys, { resources, owner, token }) {
    name(call, keys, resources);
    call.args.push(`${owner}|`, String(token));
  },
  read: ({ node, epoch }, reply) => (integer(reply, 0) === 1 ? { kind: "sealed", node, epoch } : { kind: "lost", node }),
};

function readExtended({ node }: Heard, reply: unknown): ExtendBallot {
  if (typeof reply === "number") return integer(reply, 0) === 1 ? { kind: "extended", node } : { kind: "missing", node };
  const [value, pttl] = list(reply, 2);
  return { kind: "taken", node, holder: holderOf(value), remainingMs: remainingOf(pttl) };
}

export const extend: RequestKind<ExtendQuestion, ExtendBallot> = {
  name: "extend",
  resourcesOf: ofLease,
  sharedBy: ttlOf,
  write(call, keys, { resources, owner }) {
    name(call, keys, resources);
    call.args.push(`${owner}|`);
  },
  read: readExtended,
};

export const heal: RequestKind<HealQuestion, ExtendBallot> = {
  name: "heal",
  resourcesOf: ofLease,
  sharedBy: ttlOf,
  write(call, keys, { resources, owner, label, token }) {
    name(call, keys, resources);
    call.args.push(`${owner}|${label}`, String(token));
  },
  read: readExtended,
};

export const release: RequestKind<ReleaseQuestion, ReleaseBallot> = {
  name: "release",
  resourcesOf: ofLease,
  sharedBy: nothing,
  write(call, keys, { resources, owner, tells, ticket }) {
    for (const resource of resources) call.keys.push(keys.lock(resource));
    call.args.push(`${owner}|${tells ? 1 : 0}${ticket === undefined ? "" : keys.inbox + ticket}`);
  },
  read({ node }, reply) {
    const waiting = integer(reply, 0);
    return waiting === 0 ? { kind: "absent", node } : { kind: "released", node, listeners: waiting - 1 };
  },
};

/** Gives back what is reserved for a ticket of this process, and the ticket. */
export function leaving(resources: readonly string[], keys: Keys, ticket = ""): ReleaseQuestion {
  return { resources, owner: `~${keys.inbox}${ticket}`, tells: true };
}

export const inspect: RequestKind<string, InspectBallot> = {
  name: "inspect",
  resourcesOf: () => 1,
  sharedBy: nothing,
  write(call, keys, resource) {
    name(call, keys, [resource]);
    call.args.push("");
  },
  read({ node }, reply) {
    const [value, pttl, token] = list(reply, 3);
    const held = text(value) !== "" && !isReserved(text(value));
    return {
      kind: "seen",
      node,
      holder: held ? holderOf(value) : null,
      owner: held ? fingerprintOf(value) : null,
      remainingMs: held ? remainingOf(pttl) : null,
      token: integer(token, 0),
      ...(text(value).endsWith(HAS_WAITERS) ? { hasWaiters: true } : {}),
      ...(isReserved(text(value)) ? { isReserved: true } : {}),
    };
  },
};

export const raise: RequestKind<RaiseQuestion, RaiseBallot> = {
  name: "raise",
  resourcesOf: () => 1,
  sharedBy: nothing,
  write(call, keys, { resource, token, remove }) {
    name(call, keys, [resource]);
    call.args.push(String(token), remove);
  },
  read({ node, epoch }, reply) {
    const [token, removed] = list(reply, 2);
    return {
      kind: "raised",
      node,
      token: integer(token, 1),
      epoch,
      removed: text(removed) === "" ? null : holderOf(removed),
    };
  },
};

interface RequestScript {
  readonly name: RequestName;
  readonly sha: string;
  readonly source: string;
}

export type RequestScripts = Readonly<Record<RequestName, RequestScript>>;

/**
 * Since Redis 7 the cache of scripts is neither kept over a restart nor replicated: a script that
 * names the server's run_id and is found in the cache was loaded since the server started, so it
 * need not ask for the run_id.
 */
export function requestScriptsFor({ runId }: Pick<NodeStatus, "runId">, retentionMs: number): RequestScripts {
  const firstLine = `local RETENTION, RUN = '${retentionMs}', '+${paddedRunId(runId).slice(0, -1)}'
`;
  const script = (name: RequestName, text: string): RequestScript => {
    const source = firstLine + text;
    return { name, source, sha: createHash("sha1").update(source).digest("hex") };
  };
  return {
    grant: script("grant", grantScript),
    claim: script("claim", claimScript),
    seal: script("seal", sealScript),
    extend: script("extend", extendScript),
    heal: script("heal", healScript),
    release: script("release", releaseScript),
    inspect: script("inspect", inspectScript),
    raise: script("raise", raiseScript),
  };
}
