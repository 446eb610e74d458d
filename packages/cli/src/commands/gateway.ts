// The commands that ask the gateway about a resource: fence, history, refused, raise.
import type { FenceMove, RefusalCode } from "@palisade/client";
import { answered, type Context, type Flags } from "../context.js";
import { UsageError } from "../failure.js";
import type { Report } from "../report.js";
import { printable } from "../text.js";
import { limitOf, tokenFrom } from "./lock.js";

export async function fence({ gateway }: Context, [resource = ""]: readonly string[]): Promise<Report> {
  const { ok: _, ...found } = answered(await gateway.fence(resource));
  const { token, rev, holder, updatedAt, moved } = found;
  const by = holder === null ? "" : `, last by ${printable(holder)}`;
  const state = `The fence of ${printable(resource)} stands at ${token}, revision ${rev}${by}, ${updatedAt}`;
  return { json: found, lines: moved === null ? [state] : [state, movedLine(moved)] };
}

/** Also who took the lock away, and why. */
function movedLine({ at, by, reason, previousToken, token }: FenceMove): string {
  const from = previousToken === null ? "" : `from ${previousToken} `;
  return `Last moved by hand ${from}to ${token} by ${printable(by)}, ${at}: ${printable(reason)}`;
}

export async function history({ gateway }: Context, [resource = ""]: readonly string[], flags: Flags): Promise<Report> {
  const limit = limitOf(flags.limit ?? 50);
  const { entries, nextBefore } = answered(await gateway.history(resource, { limit }));
  const rows = entries.map(({ at, rev, op, token, seq, holder }) => [
    at,
    String(rev),
    op,
    String(token),
    seq === 0 ? "" : String(seq),
    holder ?? "",
  ]);
  const more = nextBefore === null ? "" : `; there are older ones (--limit)`;
  return {
    json: { resource, entries, nextBefore },
    table: { columns: ["at", "rev", "op", "token", "seq", "holder"], rows, widest: 5 },
    lines: [`${entries.length} accepted ${entries.length === 1 ? "write" : "writes"} of ${printable(resource)}, newest first${more}`],
  };
}

export async function raise({ gateway }: Context, [resource = "", text = ""]: readonly string[], flags: Flags): Promise<Report> {
  const token = tokenFrom(text);
  const reason = typeof flags.reason === "string" ? flags.reason.trim() : "";
  if (reason === "") throw new UsageError("raise needs --reason TEXT; the gateway keeps it with the change.");
  const { previousToken, token: now } = answered(await gateway.changeFence(resource, { action: "raise", token, reason }));
  const before = previousToken === null ? "it had none" : `it stood at ${previousToken}`;
  return {
    json: { resource, previousToken, token: now },
    lines: [{ text: `The fence of ${printable(resource)} stands at ${now}; ${before}.`, colour: "green" }],
  };
}

export async function refused({ gateway }: Context, [prefix]: readonly string[], flags: Flags): Promise<Report> {
  const since = flags.since === undefined ? undefined : new Date(Date.now() - minutes(flags.since) * 60_000);
  const page = answered(await gateway.refused({ prefix, since, limit: limitOf(flags.limit ?? 50) }));
  const { entries, nextBefore } = page;
  const rows = entries.map(({ at, firstAt, times, resource, code, presentedToken, currentToken, caller }) => [
    at,
    resource,
    { text: code, colour: code === "fencing_token_stale" ? ("yellow" as const) : ("red" as const) },
    text(presentedToken),
    text(currentToken),
    caller,
    times === 1 ? "" : String(times),
    times === 1 ? "" : firstAt,
  ]);
  const total = entries.reduce((sum, { times }) => sum + times, 0);
  const more = nextBefore === null ? "" : "; there are older ones (--limit)";
  const codes = new Set(entries.map(({ code }) => code));
  return {
    json: { since: page.since, entries, nextBefore },
    table: { columns: ["at", "resource", "why", "presented", "fence", "by", "times", "first at"], rows, widest: 1 },
    lines: [
      `${total} refused ${total === 1 ? "write" : "writes"} of this gateway since ${page.since}, newest first${more}`,
      ...[...codes].flatMap((code) => (remedies[code] === undefined ? [] : [`${code}: ${remedies[code]}`])),
    ],
  };
}

const remedies: Partial<Readonly<Record<RefusalCode, string>>> = {
  fencing_token_stale: "its holder lost the lease without noticing, and was stopped; look for what stalls it, such as its host",
  fencing_token_unissued: "the lock never issued this token: it is forged or corrupt; find out who sends it",
  sequence_out_of_order: "this write, or a later one of the same holder, is stored already; nothing is to be done",
  etag_mismatch: "the document had changed; its writer reads it again and decides anew",
  verification_unavailable: "too few of the lock's nodes answered the gateway; palisade nodes says which",
  contention: "another transaction held the row for too long; look for one that stands open in Postgres",
  document_too_large: "its writer has to store less, or the gateway to take more (PALISADE_BODY_LIMIT_BYTES)",
};

function text(value: string | number | null | undefined): string {
  return value === null || value === undefined ? "" : String(value);
}

function minutes(given: unknown): number {
  const value = Number(given);
  if (!(value > 0)) throw new UsageError(`--since is a number of minutes above 0; not ${JSON.stringify(given)}.`);
  return value;
}
