// What is held, again and again: repainted on a terminal, one line for each change where the output
// is piped. Ends by a signal.
import { setTimeout as pause } from "node:timers/promises";
import { type HeldResource, type HeldResources, LockError } from "@palisade/lock";
import type { Context, Flags } from "../context.js";
import { UsageError } from "../failure.js";
import { render, type Style } from "../report.js";
import { printable } from "../text.js";
import { heldTable, limitOf, MAX_LIMIT, mostContended, waitWords } from "./lock.js";

const CLEAR = "\u001b[H\u001b[2J\u001b[3J";

export async function watch(context: Context, [prefix = ""]: readonly string[], flags: Flags): Promise<0> {
  const { style } = context;
  if (flags.json === true)
    throw new UsageError("watch has no --json; where its output is piped, each change is a line of cells parted by tabs.");
  const everyMs = intervalOf(flags.every);
  if (style.columns === undefined) refuseLimit(flags);
  const limit = style.columns === undefined ? MAX_LIMIT : limitOf(flags.limit ?? 50);
  const stopped = new AbortController();
  const stop = () => stopped.abort();
  process.once("SIGINT", stop).once("SIGTERM", stop);
  let before: ReadonlyMap<string, HeldResource> = new Map();
  let last: Picture | undefined;
  try {
    while (!stopped.signal.aborted) {
      try {
        const found = await mostContended(context, prefix, limit);
        const now = new Map(found.held.map((held) => [held.resource, held]));
        last = { found, at: new Date(), isOld: false };
        context.terminal.output.write(style.columns === undefined ? changes(before, now) : drawn(last, style));
        before = now;
      } catch (error) {
        // At the first look it is more likely a wrong address than a quorum that was lost.
        if (last === undefined || !(error instanceof LockError) || error.code !== "LOCK_NO_QUORUM") throw error;
        // What was held last is the best that is known, and is marked as old.
        if (style.columns !== undefined) context.terminal.output.write(drawn({ ...last, isOld: true }, style));
        context.terminal.errors.write(`${new Date().toISOString()}\t${printable(error.message)}\n`);
      }
      await pause(everyMs, undefined, { signal: stopped.signal }).catch(() => undefined);
    }
  } finally {
    process.off("SIGINT", stop).off("SIGTERM", stop);
  }
  return 0;
}

interface Picture {
  readonly found: Pick<HeldResources, "held" | "more">;
  readonly at: Date;
  readonly isOld: boolean;
}

function drawn({ found: { held, more }, at, isOld }: Picture, style: Style): string {
  const state = `${held.length}${more ? " and more" : ""} held${waitWords(held)}; Ctrl-C ends`;
  const text = `${isOld ? "OLD, as of " : ""}${at.toISOString().slice(11, 19)}  ${state}`;
  return CLEAR + render({ json: {}, table: heldTable(held), lines: [{ text, colour: isOld ? "red" : "dim" }] }, style);
}

/** One line each, cells parted by tabs: when, what, which, who, token. */
function changes(before: ReadonlyMap<string, HeldResource>, now: ReadonlyMap<string, HeldResource>): string {
  const at = new Date().toISOString();
  const line = (what: string, { resource, holder = "", token }: HeldResource) =>
    `${[at, what, printable(resource), printable(holder), token].join("\t")}\n`;
  const ended = [...before.values()].filter(({ resource, token }) => now.get(resource)?.token !== token);
  const taken = [...now.values()].filter(({ resource, token }) => before.get(resource)?.token !== token);
  return [...ended.map((holding) => line("ended", holding)), ...taken.map((holding) => line(holding.state, holding))].join("");
}

/** Of a part, a lease that moves out of it would be said to have ended. */
function refuseLimit({ limit }: Flags): void {
  if (limit !== undefined) throw new UsageError("--limit is for a terminal: where the output of watch is piped, every change is printed.");
}

function intervalOf(given: unknown): number {
  const seconds = given === undefined ? 1 : Number(given);
  if (!(seconds >= 0.2 && seconds <= 3_600)) throw new UsageError(`--every is in seconds, from 0.2 to 3600; not ${JSON.stringify(given)}.`);
  return seconds * 1_000;
}
