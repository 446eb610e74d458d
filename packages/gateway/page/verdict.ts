// What an operator wants to know first, in one sentence.
import type { FleetVotes } from "../src/page/messages.js";
import type { Known } from "./session.js";
import { plural, wholeDuration } from "./text.js";

export interface Verdict {
  readonly tone: "good" | "worry" | "bad";
  readonly headline: string;
  readonly more: string;
}

export function verdictOn({ state, hello, refusals }: Known, now: number): Verdict {
  const recent = refusals.filter(({ at }) => now - at < 60_000);
  const stale = recent.filter(({ code }) => code === "fencing_token_stale").length;
  const held = heldWords(state?.leases);
  const refused = refusedWords(recent.length, refusals.length === 0);
  const fleet = state?.fleet;
  if (fleet?.trouble !== undefined) return { tone: "bad", headline: "The lock's nodes cannot be asked.", more: fleet.trouble };
  const fleets = fleet?.fleets ?? [];
  const [size, votes] = [total(fleets.map((each) => each.size)), total(fleets.map((each) => each.votes))];
  const short = fleets.filter((each) => each.votes < each.quorum);
  const next = nextVote(fleet?.nodes ?? []);
  if (short.length > 0) return { tone: "bad", headline: shortWords(short), more: `${neededWords(short, fleets)}${next}${held} ${refused}` };
  if (votes < size) {
    const weakest = fleets.reduce((one, other) => (other.votes - other.quorum < one.votes - one.quorum ? other : one));
    const spare = weakest.votes - weakest.quorum;
    const left = `${spare === 0 ? "None more" : `${spare} more`}${weakest.name === undefined ? "" : ` of fleet ${weakest.name}`} may fail.`;
    return { tone: "worry", headline: `${votes} of ${size} nodes vote. The lock works.`, more: `${left} ${next}${held} ${refused}` };
  }
  if (stale > 0) {
    const lost = "A holder lost its lease without noticing it, and was stopped.";
    return {
      tone: "worry",
      headline: `${plural(stale, "late write was", "late writes were")} refused in the last minute.`,
      more: `${lost} ${held}`,
    };
  }
  if (hello?.knowsLock === false) {
    const unknown = "It does not know the lock's nodes (PALISADE_REDIS_URLS), so nodes and leases are not shown.";
    return { tone: "good", headline: "The gateway is up.", more: `${refused} ${unknown}` };
  }
  if (size === 0) return { tone: "good", headline: "Asking the lock's nodes…", more: refused };
  return { tone: "good", headline: `All ${size} nodes vote. All is well.`, more: `${held} ${refused}` };
}

const total = (numbers: readonly number[]): number => numbers.reduce((sum, each) => sum + each, 0);

function shortWords(short: readonly FleetVotes[]): string {
  const said = short.map(({ name, votes, size }) => `${votes} of ${size} nodes${name === undefined ? "" : ` of fleet ${name}`}`).join(", ");
  return `${said} vote: ${short.some(({ name }) => name === undefined) ? "no lease" : "no lease of its resources"} can be granted.`;
}

function neededWords(short: readonly FleetVotes[], fleets: readonly FleetVotes[]): string {
  const others = fleets.filter((fleet) => !short.includes(fleet)).map(({ name }) => name);
  const served = others.length === 0 ? "" : `Those of ${others.join(", ")} are served. `;
  return `${short.map(({ quorum }) => quorum).join(", ")} are needed. ${served}`;
}

function nextVote(nodes: readonly { readonly readyInMs?: number }[]): string {
  const waits = nodes.flatMap(({ readyInMs }) => (readyInMs === undefined ? [] : [readyInMs]));
  return waits.length === 0 ? "" : `The next one votes in ${wholeDuration(Math.min(...waits))} at the earliest. `;
}

function heldWords(leases: NonNullable<Known["state"]>["leases"]): string {
  if (leases === undefined || leases.ageMs === undefined) return "";
  return leases.held === 0 ? "Nothing is held." : `${plural(leases.held, "lease is", "leases are")} held.`;
}

function refusedWords(recent: number, never: boolean): string {
  if (never) return "No write was refused since this gateway started.";
  if (recent === 0) return "No write was refused in the last minute.";
  return `${plural(recent, "write was", "writes were")} refused in the last minute.`;
}
