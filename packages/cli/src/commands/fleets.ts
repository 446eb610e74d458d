// The command about several fleets: how they stand, and how their list is changed.
import type { ChangeWaiting, FleetInspection, FleetsChange, FleetsState } from "@palisade/lock";
import type { Context, Flags, Terminal } from "../context.js";
import { UsageError } from "../failure.js";
import type { Report } from "../report.js";
import { duration, printable } from "../text.js";

/** What is over sooner is not worth a line. */
const TOLD_FROM_MS = 1_000;
const DAY_MS = 86_400_000;

const colours = { used: "green", unused: "dim", changing: "yellow", silent: "red" } as const;

export async function fleets(context: Context, [verb, name = ""]: readonly string[], flags: Flags): Promise<Report> {
  if (verb === undefined) return shown(await context.locker.fleets());
  const change = changeOf(verb, name, flags);
  if ("remove" in change && flags.yes !== true) {
    const lost = flags.lost === true ? `The servers of ${name} must be off, and stay off. ` : "";
    const answer = await context.ask(
      `${lost}Resources of ${name} have no new holder until its leases are over. Type ${name} to take it away: `,
    );
    if (answer === undefined) throw new UsageError("fleets remove asks on a terminal; without one, give --yes.");
    if (answer !== name) return { json: { changed: false }, lines: ["Nothing was changed."], exitCode: 1 };
  }
  const progress = new Progress(context.terminal.errors);
  try {
    return shown(await context.locker.changeFleets(change, { onWait: (waiting) => progress.tell(waiting) }));
  } finally {
    progress.end();
  }
}

/** Tells on the terminal what a change waits for, and until when. */
class Progress {
  readonly #errors: Terminal["errors"];
  #timer: NodeJS.Timeout | undefined;

  constructor(errors: Terminal["errors"]) {
    this.#errors = errors;
  }

  tell({ why, waitMs }: ChangeWaiting): void {
    this.end();
    const until = waitMs === undefined ? "" : ` until ${new Date(Date.now() + waitMs).toTimeString().slice(0, 8)} (${duration(waitMs)})`;
    const write = (): boolean => this.#errors.write(`palisade: waiting${until}: ${printable(why)}\n`);
    if (waitMs === undefined) this.#timer = setTimeout(write, TOLD_FROM_MS);
    else if (waitMs >= TOLD_FROM_MS) write();
  }

  end(): void {
    clearTimeout(this.#timer);
  }
}

/** In milliseconds, as maxTtlMs of the lock is. */
function longestOf({ lost, "max-ttl": given }: Flags): number | undefined {
  if (given === undefined) return undefined;
  if (lost !== true) throw new UsageError("--max-ttl belongs to fleets remove --lost.");
  const maxTtlMs = Number(given);
  if (Number.isInteger(maxTtlMs) && maxTtlMs >= 1 && maxTtlMs <= DAY_MS) return maxTtlMs;
  throw new UsageError(`--max-ttl is a whole number of milliseconds from 1 to ${DAY_MS}; not ${JSON.stringify(given)}.`);
}

function changeOf(verb: string, name: string, flags: Flags): FleetsChange {
  if (name === "") throw new UsageError(`fleets ${verb} needs the name of a fleet.`);
  if (flags.lost === true && verb !== "remove") throw new UsageError("--lost belongs to fleets remove.");
  const maxTtlMs = longestOf(flags);
  if (verb === "name") return { name };
  if (verb === "add") return { add: name };
  if (verb === "remove" && flags.lost === true) return { remove: name.split(","), lost: maxTtlMs === undefined ? true : { maxTtlMs } };
  if (verb === "remove") return { remove: name };
  throw new UsageError(`fleets knows name, add and remove; not ${JSON.stringify(verb)}.`);
}

function shown({ version, fleets: all }: FleetsState): Report {
  const rows = all.map(({ name, state, version: own, members }) => [
    name,
    { text: state, colour: colours[state] },
    own === undefined ? "" : String(own),
    members.join(" "),
  ]);
  const line = sentence(all, version);
  return {
    json: { version, fleets: all },
    table: { columns: ["fleet", "state", "list", "nodes"], rows, widest: 3 },
    lines: [line],
    exitCode: all.some(({ state }) => state === "changing" || state === "silent") ? 1 : 0,
  };
}

function sentence(all: readonly FleetInspection[], version: number): string {
  const changing = all.filter(({ state }) => state === "changing").map(({ name }) => name);
  if (changing.length > 0)
    return `A change is not finished: ${changing.join(" and ")} ${changing.length === 1 ? "has" : "have"} not version ${version} of the list. Repeat it, or take it back.`;
  const used = all.filter(({ state }) => state === "used").map(({ name }) => name);
  if (version === 0) return "There is no list of fleets: one fleet is used by itself.";
  return `Version ${version} of the list; resources belong to ${used.join(", ")}`;
}
