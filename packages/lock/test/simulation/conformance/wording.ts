// How requests are written and their replies are taken apart, by the lock's own means.
import type { Ballot } from "#lock/protocol/ballot.js";
import type { Keys } from "#lock/redis/keys.js";
import { type CallReply, type RequestKind, readCall, writeCall } from "#lock/redis/requests.js";
import type { Question } from "./step.js";

export interface Asking {
  readonly text: readonly string[];
  readonly keyCount: number;
}

export function textOf(kind: RequestKind<unknown, Ballot>, keys: Keys, questions: readonly [Question, ...Question[]]): Asking {
  const [first, ...rest] = questions;
  const of = (question: Question): { readonly question: unknown } => ({ question: kind.name === "inspect" ? question.resource : question });
  const call = writeCall(kind, keys, [of(first), ...rest.map(of)]);
  return { text: [...call.keys, ...call.args], keyCount: call.keys.length };
}

export function readReplies(reply: unknown, requests: number, believed: string | undefined): CallReply {
  return readCall(reply, requests, believed);
}
