// The scripts by which the members agree on the next generation: their arguments and replies. When
// they are called is decided in admission/change.ts.

import type { Keys } from "./keys.js";
import { acceptScript, enterScript, promiseScript } from "./lua.generated.js";
import type { ScriptCall } from "./node-record.js";
import { GarbageReply } from "./requests.js";
import { generationOf, type Roster, readRoster, writeRoster } from "./roster.js";

function words(reply: unknown): readonly string[] {
  if (Array.isArray(reply) && reply.every((word) => typeof word === "string")) return reply;
  throw new GarbageReply(reply);
}

export type Promised =
  | { readonly kind: "promised"; readonly accepted: number; readonly roster: Roster | undefined }
  /** It has promised this ballot already, or its record has changed. */
  | { readonly kind: "refused"; readonly promised: number };

export const promise = (keys: Keys, noted: string, ballot: number): ScriptCall<Promised> => ({
  source: promiseScript,
  keys: [keys.node],
  args: [noted, String(ballot)],
  read(reply) {
    const [verdict, number = "", members = ""] = words(reply);
    if (verdict !== "1") return { kind: "refused", promised: Number(number) };
    return { kind: "promised", accepted: Number(number), roster: readRoster(members) };
  },
});

interface AcceptArguments {
  /** The field admitted as it was noted before the promise. */
  readonly noted: string;
  readonly ballot: number;
  readonly roster: Roster;
  /** How long the present generation must have been open: every lease of the one before is over. */
  readonly openForMs: number;
  readonly epoch: string;
}

export type Accepted =
  | { readonly kind: "accepted"; readonly floor: number }
  | { readonly kind: "refused" }
  | { readonly kind: "too early"; readonly missingMs: number };

export const accept = (keys: Keys, given: AcceptArguments): ScriptCall<Accepted> => ({
  source: acceptScript,
  keys: [keys.node],
  args: [given.noted, String(given.ballot), writeRoster(given.roster), String(given.openForMs), given.epoch],
  read(reply) {
    const [verdict, number = ""] = words(reply);
    if (verdict === "1") return { kind: "accepted", floor: Number(number) };
    return verdict === "2" ? { kind: "too early", missingMs: Number(number) } : { kind: "refused" };
  },
});

interface EnterArguments {
  readonly roster: Roster;
  readonly floor: number;
  readonly epoch: string;
  /** Since which generation it has been a member without a break. */
  readonly since: number;
}

/** True if the node votes in that generation from now on. */
export const enter = (keys: Keys, { roster, floor, epoch, since }: EnterArguments): ScriptCall<boolean> => ({
  source: enterScript,
  keys: [keys.node],
  args: [
    generationOf(roster),
    String(roster.generation),
    writeRoster(roster),
    String(roster.maxTtlMs),
    String(floor),
    epoch,
    String(since),
  ],
  read: (reply) => reply === "1",
});
