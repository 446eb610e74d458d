// The protocol between the lock and its nodes: the names of all that is stored, and the one table of
// what a node can be asked. Each verb has a script in redis/lua, whose head says the same from the
// other side: how KEYS and ARGV are written, and what the reply means. Questions and ballots, the
// nodes of tests and the fake are typed by this table.
import { createHash } from "node:crypto";
import type {
  Ballot,
  ExtendBallot,
  GrantBallot,
  Held,
  InspectBallot,
  RaiseBallot,
  ReleaseBallot,
  SealBallot,
  Unreachable,
} from "./ballot.js";
import { MAX_TOKEN } from "./token.js";

// All keys of a namespace begin with it in braces, which it cannot contain, so a script finds where
// it ends. Then follows a fixed word for each kind of key, and the resource comes last and unchanged:
// no resource can take the name of another key.

export interface Keys {
  /**
   * The node's record: its admission, its fleet, and its floor: no token that
   * it ever gave to any resource is higher.
   */
  readonly node: string;
  /** The lock: its value names the owner. */
  lock(resource: string): string;
  /** Where one process is told of releases: its tickets name the inbox, and so does the channel. */
  readonly inbox: string;
  readonly inboxChannel: string;
  /** The counter: the highest token stored for the resource. */
  token(resource: string): string;
  /** Numbers of the caller's that only rise, by name. */
  readonly marks: string;
}

/**
 * The keys of a namespace, which must not be empty nor contain braces. `inbox` names the
 * process, where it waits.
 */
export function keysOf(namespace: string, inbox = ""): Keys {
  if (namespace === "" || /[{}]/.test(namespace)) throw new RangeError("a namespace must not be empty nor contain braces");
  const lockPrefix = `{${namespace}}:lock:`;
  const tokenPrefix = `{${namespace}}:token:`;
  return {
    node: `{${namespace}}:node`,
    lock: (resource) => lockPrefix + resource,
    token: (resource) => tokenPrefix + resource,
    marks: `{${namespace}}:marks`,
    inbox,
    inboxChannel: `{${namespace}}:inbox:${inbox}`,
  };
}

/** What every question names. */
export interface Asked {
  /** One or more: of several all are taken, or none. Only one is inspected, or raised. */
  readonly resources: readonly string[];
}

export interface Ownership extends Asked {
  /** The secret of one acquisition. */
  readonly owner: string;
}

export interface GrantQuestion extends Ownership {
  /** Shown to people: host, process id, service. */
  readonly label: string;
  readonly ttlMs: number;
}

export interface ClaimQuestion extends GrantQuestion {
  readonly wait: Wait;
}

/** How long a node keeps a ticket that is not asked for again; also in claim.lua. */
export const TICKET_MS = 90_000;
/** For how long at most a node keeps, at once, a part of what one waits for; also in queue.lua. */
export const LONGEST_PART_MS = 1_000;

/** Since when a caller waits, by its wall clock, and for how long, by its monotonic one. */
export interface Wait {
  readonly sinceMs: number;
  readonly waitedMs: number;
  /** The name of its ticket among those of this process. */
  readonly ticket: string;
  /** For how long a node keeps for it what is free. */
  readonly reserveMs: number;
  /** The owner of a lease of this process, whose release travels behind the claim. */
  readonly follows?: string | undefined;
}

export interface ReleaseQuestion extends Ownership {
  /** Whether the first in the queue has it then. Not where an acquisition gives back what a minority granted. */
  readonly tells: boolean;
  /**
   * The name of the ticket that won the lease: a node that did not grant it may have it still, or
   * may have reserved the lock for it.
   */
  readonly ticket?: string | undefined;
}

/** The node that answered, and its epoch at that moment. */
export interface Answerer {
  readonly node: string;
  readonly epoch: string;
}

interface VerbOf<Question extends Asked, Answer> {
  /** The name of its file in redis/lua, without the ending. Verbs may share a script. */
  readonly script: "grant" | "claim" | "seal" | "extend" | "heal" | "release" | "inspect" | "raise";
  /**
   * `admission`: only an admitted node answers; its record is the first of KEYS, and a lock and a
   * counter follow for each resource. `nothing`: it gives back. Every node does it, in quarantine
   * too; it is sent also to one that is late or excluded; and KEYS has the locks alone.
   */
  readonly needs: "admission" | "nothing";
  /** Of one that gives back: what is asked again when it is not known whether it was done. */
  again?(question: Question): Question | undefined;
  /** Asked alone, for one resource, it takes the confirmed admission along (RedisNode). */
  readonly confirmsAdmission?: true;
  // At the beginning of ARGV, once for all requests of one call, which are alike in the first and
  // the last of these:
  ttlOf?(question: Question): number;
  /** Adds to ARGV what each request has of its own. */
  write(args: string[], question: Question, keys: Keys): void;
  /** Not called for the replies that are the same for all verbs: quarantined, failed. */
  read(from: Answerer, reply: unknown, question: Question): Answer;
}

/** What a script call needs to know of any verb. */
export type AnyVerb = VerbOf<Asked, Ballot>;

function verb<Question extends Asked, Answer>(given: VerbOf<Question, Answer>): VerbOf<Question, Answer> {
  return given;
}

const ttlOf = ({ ttlMs }: { readonly ttlMs: number }): number => ttlMs;

export const verbs = {
  /** All resources, or none. */
  grant: verb<GrantQuestion, GrantBallot>({
    script: "grant",
    needs: "admission",
    confirmsAdmission: true,
    ttlOf,
    write(args, { owner, label }) {
      args.push(`${owner}|${label}`);
    },
    read: (from, reply, { resources }) =>
      typeof reply === "number" ? granted(from, reply) : readHeld(from.node, list(reply, 3), resources),
  }),

  /** The caller waits: it may take what is reserved for it, and is refused with a ticket. */
  claim: verb<ClaimQuestion, GrantBallot>({
    script: "claim",
    needs: "admission",
    ttlOf,
    write(args, { owner, label, wait }, { inbox }) {
      args.push(`${owner}|${label}`, wholeMs(wait.sinceMs), wholeMs(wait.waitedMs));
      args.push(inbox + wait.ticket, wholeMs(wait.reserveMs), wait.follows === undefined ? "" : `${wait.follows}|`);
    },
    read(from, reply, { resources }) {
      if (typeof reply === "number") return granted(from, reply);
      const [index, value, pttl, rank] = list(reply, 4);
      const held = readHeld(from.node, [index, value, pttl], resources);
      const place = integer(rank, 0);
      return place === 0 ? held : { ...held, place };
    },
  }),

  /** Stores `token` for all resources if they all still have this owner. */
  seal: verb<Ownership & { readonly token: number }, SealBallot>({
    script: "seal",
    needs: "admission",
    write(args, { owner, token }) {
      args.push(`${owner}|`, String(token));
    },
    read: ({ node, epoch }, reply) => (integer(reply, 0) === 1 ? { kind: "sealed", node, epoch } : { kind: "lost", node }),
  }),

  /** Renews where the owner still has it; never creates a key. */
  extend: verb<Ownership & { readonly ttlMs: number }, ExtendBallot>({
    script: "extend",
    needs: "admission",
    ttlOf,
    write(args, { owner }) {
      args.push(`${owner}|`);
    },
    read: readExtended,
  }),

  /**
   * Creates the key again where there is none: after a quorum confirmed the owner in the same round, or,
   * for no longer than the lease lasts, on nodes that became members since it was granted.
   */
  heal: verb<GrantQuestion & { readonly token: number }, ExtendBallot>({
    script: "heal",
    needs: "admission",
    ttlOf,
    write(args, { owner, label, token }) {
      args.push(`${owner}|${label}`, String(token));
    },
    read: readExtended,
  }),

  /**
   * Compare-and-delete, then the first in the queue has it. Travels behind every earlier request on
   * the same connection, so it also gives back a grant that is still on its way; if the connection
   * was lost meanwhile it is sent again on the next one, however late. One that
   * the node refuses to execute is sent again for as long as the key could live.
   */
  release: verb<ReleaseQuestion, ReleaseBallot>({
    script: "release",
    needs: "nothing",
    // By the time that it is sent again, the ticket may be that of another caller of this process.
    again: (question) => (question.ticket === undefined ? question : { ...question, ticket: undefined }),
    write(args, { owner, tells, ticket }, keys) {
      args.push(`${owner}|${tells ? 1 : 0}${ticket === undefined ? "" : keys.inbox + ticket}`);
    },
    read: readReleased,
  }),

  /** The caller waits no longer: its ticket and what is reserved for it go to the next. */
  leave: verb<Asked & { readonly ticket: string }, ReleaseBallot>({
    script: "release",
    needs: "nothing",
    again: (question) => question,
    write(args, { ticket }, keys) {
      args.push(`~${keys.inbox}${ticket}|1`);
    },
    read: readReleased,
  }),

  /** With a ticket: whether that still waits there; nothing else of the queue, nor the token, is read then. */
  inspect: verb<Asked & { readonly ticket?: string }, InspectBallot>({
    script: "inspect",
    needs: "admission",
    write(args, { ticket }, { inbox }) {
      args.push(ticket === undefined ? "" : inbox + ticket);
    },
    read({ node }, reply, { ticket }) {
      const [value, pttl, token, waits] = list(reply, 4);
      const held = text(value) !== "" && !isReserved(text(value));
      return {
        kind: "seen",
        node,
        holder: held ? holderOf(value) : null,
        owner: held ? fingerprintOf(value) : null,
        remainingMs: held ? remainingOf(pttl) : null,
        token: integer(token, 0),
        ...(isReserved(text(value)) ? { isReserved: true } : {}),
        ...(ticket === undefined ? { waiting: integer(waits, 0) } : waits === 0 ? { isForgotten: true } : {}),
      };
    },
  }),

  /**
   * Raises the counter to at least `token` whoever owns the resource; or, with the fingerprint of a
   * holder (null: none was seen), removes that holder with it, so that the first in the queue has
   * the lock, and does nothing where another one has it.
   */
  raise: verb<Asked & { readonly token: number; readonly holder?: string | null }, RaiseBallot>({
    script: "raise",
    needs: "admission",
    write(args, { token, holder }) {
      args.push(String(token), holder === undefined ? "whoever" : (holder ?? ""));
    },
    read({ node, epoch }, reply) {
      if (reply === 0) return { kind: "kept", node };
      const [token, removed] = list(reply, 2);
      return { kind: "raised", node, token: integer(token, 1), epoch, removed: text(removed) === "" ? null : holderOf(removed) };
    },
  }),
};

export type Verb = keyof typeof verbs;
export type QuestionOf<V extends Verb> = Parameters<(typeof verbs)[V]["write"]>[1];
export type BallotOf<V extends Verb> = ReturnType<(typeof verbs)[V]["read"]> | Unreachable;
/** What answers every verb. */
export type Answers = { readonly [V in Verb]: (question: QuestionOf<V>) => BallotOf<V> };

function granted({ node, epoch }: Answerer, reply: number): GrantBallot {
  return { kind: "granted", node, token: integer(reply, 1), epoch };
}

function readHeld(node: string, [index, value, pttl]: readonly unknown[], resources: readonly string[]): Held {
  const resource = resources[integer(index, 1) - 1];
  if (resource === undefined) throw new GarbageReply(index);
  const held = { kind: "held", node, resource, holder: holderOf(value), remainingMs: remainingOf(pttl) } as const;
  return isReserved(text(value)) ? { ...held, isReserved: true } : held;
}

function readExtended({ node }: Answerer, reply: unknown): ExtendBallot {
  if (typeof reply === "number") return integer(reply, 0) === 1 ? { kind: "extended", node } : { kind: "missing", node };
  const [value, pttl] = list(reply, 2);
  return { kind: "taken", node, holder: holderOf(value), remainingMs: remainingOf(pttl) };
}

function readReleased({ node }: Answerer, reply: unknown): ReleaseBallot {
  const waiting = integer(reply, 0);
  return waiting === 0 ? { kind: "absent", node } : { kind: "released", node, listeners: waiting - 1 };
}

/** A reply that none of our scripts gives: something else answered. */
export class GarbageReply extends Error {
  constructor(reply: unknown) {
    super(`garbage reply ${(JSON.stringify(reply) ?? String(reply)).slice(0, 60)}`);
  }
}

function integer(reply: unknown, least: number): number {
  if (typeof reply === "number" && Number.isInteger(reply) && reply >= least && reply <= MAX_TOKEN) return reply;
  throw new GarbageReply(reply);
}

export function text(reply: unknown): string {
  if (typeof reply === "string") return reply;
  throw new GarbageReply(reply);
}

export function list(reply: unknown, length: number): readonly unknown[] {
  if (Array.isArray(reply) && reply.length === length) return reply;
  throw new GarbageReply(reply);
}

/**
 * The label of a lock value `owner|label`. A value of another form is a key that the lock did not
 * make; it is shown whole.
 */
function holderOf(reply: unknown): string {
  const value = text(reply);
  return value.slice(value.indexOf("|") + 1);
}

/** Of a lock that is free and reserved for a process that waits (see queue.lua). */
const isReserved = (value: string): boolean => value.startsWith("~");

/** Tells owners apart without showing their secrets; as the scripts make it. */
export function fingerprintOf(value: unknown): string {
  const [secret = ""] = text(value).split("|", 1);
  return createHash("sha1").update(secret).digest("hex").slice(0, 8);
}

const LONGEST_MS = 2 ** 31 - 1;

/**
 * PTTL: −1 is a key without an end, which the lock never makes; the longest time that a timer can
 * wait stands for it.
 */
export function remainingOf(reply: unknown): number {
  const ms = integer(reply, -2);
  return ms === -1 ? LONGEST_MS : Math.max(0, ms);
}

function wholeMs(ms: number): string {
  return Math.max(0, ms).toFixed(0);
}
