// The commands that ask the lock's nodes about resources: inspect, ls, issued, force-release.
import { type HeldResource, type HeldResources, type Inspection, parseToken } from "@palisade/lock";
import { answered, type Context, type Flags } from "../context.js";
import { UsageError } from "../failure.js";
import type { Cell, Report } from "../report.js";
import { duration, printable } from "../text.js";

const stateColours = { held: "yellow", free: "green", split: "red", unknown: "red" } as const;

export async function inspect({ locker }: Context, [resource = ""]: readonly string[]): Promise<Report> {
  const inspection = await locker.inspect(resource);
  const rows = inspection.ballots.map((ballot) =>
    ballot.kind === "seen"
      ? [
          ballot.node,
          ballot.holder ?? "free",
          ballot.remainingMs === null ? "" : duration(ballot.remainingMs),
          String(ballot.token),
          ballot.owner ?? "",
        ]
      : [ballot.node, { text: silence(ballot), colour: "red" as const }, "", "", ""],
  );
  return {
    json: inspection,
    table: { columns: ["node", "holder", "left", "token", "owner"], rows, widest: 1 },
    lines: [stateLine(inspection)],
    exitCode: inspection.state === "unknown" ? 1 : 0,
  };
}

type Silent = Exclude<Inspection["ballots"][number], { readonly kind: "seen" }>;

function silence(ballot: Silent): string {
  if (ballot.kind === "unreachable") return `no answer: ${ballot.cause}`;
  return ballot.readyInMs === undefined ? "does not vote yet" : `does not vote for ${duration(ballot.readyInMs)}`;
}

function stateLine({ resource, state, holder, remainingMs, token, waiting }: Inspection): Cell {
  const name = printable(resource);
  const text = {
    held: `${name} is held by ${printable(holder ?? "")} for ${duration(remainingMs ?? 0)} more at most, with token ${token}; ${waiting} ${waiting === 1 ? "waits" : "wait"}`,
    // Of one that was never used the nodes tell their floor.
    free: `${name} is free; every later lease has a token above ${token}`,
    split: `${name} is split: no holder has a quorum, and none can get one before these leases end`,
    unknown: `${name}: too few nodes answered to tell`,
  }[state];
  return { text, colour: stateColours[state] };
}

export async function list(context: Context, [prefix = ""]: readonly string[], flags: Flags): Promise<Report> {
  const limit = limitOf(flags.limit);
  const { held, more } = await mostContended(context, prefix, limit);
  const of = prefix === "" ? "" : ` that ${held.length === 1 ? "begins" : "begin"} with ${printable(prefix)}`;
  const rest = more ? `; only the first ${limit} are shown (--limit)` : "";
  const lines = [`${held.length} ${held.length === 1 ? "resource is" : "resources are"} held${of}${waitWords(held)}${rest}`];
  return { json: { held, more }, table: heldTable(held), lines };
}

/** Those for which most wait, and then by name; so many of them. */
export async function mostContended({ locker }: Context, prefix: string, limit: number): Promise<Pick<HeldResources, "held" | "more">> {
  const { held, more } = await locker.fleet.listHeld({ prefix });
  return { held: held.toSorted((a, b) => b.waiting - a.waiting).slice(0, limit), more: more || held.length > limit };
}

export function waitWords(held: readonly HeldResource[]): string {
  const waiting = held.reduce((sum, one) => sum + one.waiting, 0);
  if (waiting === 0) return "";
  return `, ${waiting} ${waiting === 1 ? "waits" : "wait"} for ${held.filter((one) => one.waiting > 0).length} of them`;
}

export function heldTable(held: readonly HeldResource[]): NonNullable<Report["table"]> {
  const rows = held.map(({ resource, state, holder = "", remainingMs, token, waiting }) => [
    resource,
    state === "held" ? holder : { text: state, colour: stateColours[state] },
    remainingMs === undefined ? "" : duration(remainingMs),
    String(waiting),
    String(token),
  ]);
  return { columns: ["resource", "holder", "left", "waiting", "token"], rows, widest: 0 };
}

/** What the lock lists at most. */
export const MAX_LIMIT = 100_000;

export function limitOf(given: unknown): number {
  const limit = given === undefined ? 1_000 : Number(given);
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT)
    throw new UsageError(`--limit is a whole number from 1 to ${MAX_LIMIT}; not ${JSON.stringify(given)}.`);
  return limit;
}

export async function issued({ locker }: Context, [resource = "", text = ""]: readonly string[]): Promise<Report> {
  const token = tokenFrom(text);
  const wasIssued = await locker.fleet.issued(resource, token);
  const said = wasIssued ? "was issued, or a higher one was" : "was never issued: whoever presents it made it up";
  const line: Cell = { text: `Token ${token} of ${printable(resource)} ${said}`, colour: wasIssued ? "green" : "red" };
  return { json: { resource, token, issued: wasIssued }, lines: [line], exitCode: wasIssued ? 0 : 1 };
}

export function tokenFrom(text: string): number {
  const token = parseToken(text);
  if (token === undefined)
    throw new UsageError(`${JSON.stringify(text)} is no token: a token is a whole number from 1 to 999999999999999.`);
  return token;
}

export async function forceRelease(context: Context, [resource = ""]: readonly string[], flags: Flags): Promise<Report> {
  const reason = typeof flags.reason === "string" ? flags.reason.trim() : "";
  if (reason === "") throw new UsageError("force-release needs --reason TEXT; it is published with the event.");
  const before = await context.locker.inspect(resource);
  if (before.state === "free")
    return { json: { resource, removed: [], before }, lines: [{ text: `Nothing was changed: ${stateLine(before).text}` }], exitCode: 1 };
  if (flags.yes !== true) {
    const answer = await context.ask(
      `${stateLine(before).text}.\nIts next write is refused and it loses the lock. Type the resource's name to take it away: `,
    );
    if (answer === undefined) throw new UsageError("force-release asks on a terminal; without one, give --yes.");
    if (answer !== resource) return { json: { resource, removed: [], before }, lines: ["Nothing was changed."], exitCode: 1 };
  }
  const { fence, removed } = await context.locker.fleet.forceRelease(resource, { reason, token: before.token });
  const lines: (string | Cell)[] = [
    {
      text: `Removed: ${removed.map(printable).join(", ") || "nobody"}. Every later lease has a token above ${fence - 1}.`,
      colour: "green",
    },
  ];
  if (!context.hasGateway) {
    lines.push({
      text: `No gateway was given: the old holder is refused only once a store has seen token ${fence}. Seal the resource with it.`,
      colour: "yellow",
    });
    return { json: { resource, fence, removed, before, sealed: false }, lines };
  }
  lines.push(...(await sealed(context, { resource, fence, reason })));
  return { json: { resource, fence, removed, before, sealed: true }, lines };
}

/** By hand, because then the gateway keeps who did it and why; a key that may only seal does that. */
async function sealed(
  { gateway }: Context,
  { resource, fence, reason }: { readonly resource: string; readonly fence: number; readonly reason: string },
): Promise<readonly Cell[]> {
  const raised = await gateway.changeFence(resource, { action: "raise", token: fence, reason });
  const isKept = raised.ok || raised.code !== "forbidden_scope";
  const { token } = answered(isKept ? raised : await gateway.seal(resource, { token: fence }));
  const text = `The gateway's fence stands at ${token}: writes with a lower token are refused from now on.`;
  const unkept = "The key has no admin scope, so the gateway does not keep who took the lock away and why.";
  return [{ text, colour: "green" }, ...(isKept ? [] : [{ text: unkept, colour: "yellow" } as const])];
}
