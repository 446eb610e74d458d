// Every command with its words and flags: what is parsed, shown as help, and completed by a shell.
import { doctor, nodes } from "./commands/fleet.js";
import { fence, history, raise, refused } from "./commands/gateway.js";
import { forceRelease, inspect, issued, list } from "./commands/lock.js";
import { watch } from "./commands/watch.js";
import type { Context, Flags } from "./context.js";
import type { Report } from "./report.js";

type FlagName = "reason" | "yes" | "limit" | "every" | "since";

export interface Command {
  /** What stands behind the name; in brackets what may be left out. */
  readonly words: readonly string[];
  readonly flags: readonly FlagName[];
  readonly help: string;
  readonly example: string;
  readonly run: (context: Context, words: readonly string[], flags: Flags) => Promise<Report | 0>;
}

export interface Flag {
  /** What follows it; absent: nothing. */
  readonly value?: string;
  readonly help: string;
}

export const flagHelp: Readonly<Record<FlagName, Flag>> = {
  reason: { value: "TEXT", help: "why; it is kept or published with the change" },
  yes: { help: "do not ask" },
  limit: { value: "N", help: "show at most so many" },
  since: { value: "MINUTES", help: "only what happened within so many" },
  every: { value: "SECONDS", help: "how often to look; 1" },
};

export const generalFlags: Readonly<Record<string, Flag>> = {
  nodes: { value: "URLS", help: "the lock's nodes, parted by commas (PALISADE_REDIS_URLS)" },
  namespace: { value: "NAME", help: "of the lock (PALISADE_NAMESPACE)" },
  gateway: { value: "URL", help: "the gateway (PALISADE_GATEWAY_URL; its key is PALISADE_API_KEY)" },
  "env-file": { value: "FILE", help: "a file of NAME=value lines with these names" },
  timeout: { value: "SECONDS", help: "how long to wait for an answer; 5" },
  json: { help: "for programs" },
  "no-color": { help: "plain text on a terminal too (NO_COLOR)" },
  help: { help: "this text" },
  version: { help: "the version" },
};

export const commands: Readonly<Record<string, Command>> = {
  inspect: {
    words: ["RESOURCE"],
    flags: [],
    help: "who holds it, for how long, and what each node says",
    example: "palisade inspect orders/42",
    run: inspect,
  },
  ls: {
    words: ["[PREFIX]"],
    flags: ["limit"],
    help: "what is held now, by the word of a quorum",
    example: "palisade ls orders/",
    run: list,
  },
  watch: {
    words: ["[PREFIX]"],
    flags: ["every", "limit"],
    help: "the same, live",
    example: "palisade watch orders/ --every 0.5",
    run: watch,
  },
  nodes: { words: [], flags: [], help: "which nodes vote, which wait, which are silent", example: "palisade nodes", run: nodes },
  doctor: {
    words: [],
    flags: [],
    help: "what is wrong or risky with the nodes, with remedies; 1 if something is wrong",
    example: "palisade doctor",
    run: doctor,
  },
  issued: {
    words: ["RESOURCE", "TOKEN"],
    flags: [],
    help: "whether this token, or a higher one, was ever issued; 1 if not",
    example: "palisade issued orders/42 179506869769500",
    run: issued,
  },
  "force-release": {
    words: ["RESOURCE"],
    flags: ["reason", "yes"],
    help: "take the lock from its holder, and fence it at the gateway where one is given",
    example: 'palisade force-release orders/42 --reason "host is gone"',
    run: forceRelease,
  },
  fence: { words: ["RESOURCE"], flags: [], help: "the fence that the gateway has stored", example: "palisade fence orders/42", run: fence },
  history: {
    words: ["RESOURCE"],
    flags: ["limit"],
    help: "accepted writes, newest first, where the gateway keeps them",
    example: "palisade history orders/42 --limit 10",
    run: history,
  },
  refused: {
    words: ["[PREFIX]"],
    flags: ["since", "limit"],
    help: "writes that this gateway refused since its start, and why, newest first",
    example: "palisade refused orders/ --since 10",
    run: refused,
  },
  raise: {
    words: ["RESOURCE", "TOKEN"],
    flags: ["reason"],
    help: "raise the fence by hand: lower tokens are refused",
    example: 'palisade raise orders/42 179506869769501 --reason "holder misbehaves"',
    run: raise,
  },
};
