// Through the gateway with nothing but fetch, as a caller in any language would: repeats by hand
// what has a sequence number.
import { setTimeout as sleep } from "node:timers/promises";
import type { Answer, Document } from "../history/records.js";
import type { ReadAnswer, Route, Write } from "./route.js";

const TRIES = 3;
const TIMEOUT_MS = 1_200;
const PAUSE_MS = 30;

interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

interface Problem {
  readonly code?: string;
  readonly outcome?: string;
  readonly currentSeq?: number;
  readonly currentETag?: string;
}

/** `first`: which gateway is asked first. */
export function fetchRoute(urls: readonly string[], apiKey: string, first: () => number): Route {
  const ask = async (method: string, path: string, more: { headers?: Record<string, string>; body?: string }): Promise<Reply> => {
    const url = urls[(first() + tries++) % urls.length];
    const headers = { authorization: `Bearer ${apiKey}`, ...more.headers };
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const response = await fetch(`${url}/v1/resources/${path}`, { ...more, method, headers, signal });
    return { status: response.status, headers: response.headers, text: await response.text() };
  };
  let tries = 0;
  return {
    via: "fetch",
    seal: (resource, token) => read(() => ask("POST", `${resource}/seal`, { headers: { "fencing-token": `${token}` } }), "sealed"),
    get: (resource) => read(() => ask("GET", resource, {}), "got"),
    write: (write) => writeThrough(ask, write),
  };
}

async function read(question: () => Promise<Reply>, how: "sealed" | "got"): Promise<ReadAnswer> {
  const reply = await question().catch(noReply);
  if (reply === undefined || reply.status >= 500) return { outcome: "unknown", code: `status ${reply?.status ?? "none"}` };
  if (reply.status !== 200) return { outcome: "refused", code: problemOf(reply).code ?? `status ${reply.status}` };
  const body = JSON.parse(reply.text) as Document & { readonly value: Document | null; readonly rev: number };
  const rev = how === "sealed" ? body.rev : revOf(reply.headers.get("etag"));
  return { outcome: "done", rev, seen: { rev, document: how === "sealed" ? body.value : body } };
}

type Ask = (method: string, path: string, more: { headers?: Record<string, string>; body?: string }) => Promise<Reply>;

async function writeThrough(ask: Ask, { kind, resource, token, seq, document }: Write): Promise<Answer> {
  const headers = { "fencing-token": `${token};seq=${seq}`, ...(kind === "delete" ? {} : { "content-type": "application/json" }) };
  const body = kind === "delete" ? {} : { body: JSON.stringify(document) };
  // An earlier try may have been applied: then the refusal of a later one says nothing about it.
  let maybe = false;
  let code = "";
  for (let attempt = 1; attempt <= TRIES; attempt++) {
    const reply = await ask(kind.toUpperCase(), resource, { headers, ...body }).catch(noReply);
    if (reply !== undefined && reply.status < 300) return { outcome: "done", rev: revOf(reply.headers.get("etag")) };
    const problem = reply === undefined ? {} : problemOf(reply);
    code = problem.code ?? `status ${reply?.status ?? "none"}`;
    if (maybe && code === "sequence_out_of_order" && problem.currentSeq === seq && problem.currentETag !== undefined)
      return { outcome: "done", rev: revOf(problem.currentETag) };
    const isUnknown = reply === undefined || problem.code === undefined || problem.outcome === "unknown" || code === "internal";
    if (!isUnknown && (reply?.status ?? 0) < 500 && code !== "contention") break;
    maybe ||= isUnknown;
    await sleep(PAUSE_MS * attempt);
  }
  return { outcome: maybe ? "unknown" : "refused", code };
}

function revOf(etag: string | null): number {
  return Number(/^"(\d+)"$/.exec(etag ?? "")?.[1] ?? Number.NaN);
}

function problemOf(reply: Reply): Problem {
  try {
    return JSON.parse(reply.text) as Problem;
  } catch {
    return {};
  }
}

// Whatever broke, what came of the request is unknown.
function noReply(): undefined {}
