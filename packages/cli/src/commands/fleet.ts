// The commands about the nodes themselves: nodes and doctor.
import { randomUUID } from "node:crypto";
import type { Context } from "../context.js";
import type { Cell, Report } from "../report.js";
import { duration, printable } from "../text.js";

/** The address without what may stand before it: a password. */
export function addressOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : "?";
}

/**
 * By name: a locker calls the nodes that it is given n1, n2, …, and goes on with those that only
 * the members name. Undefined where it cannot be told which of several is which.
 */
function addressesOf(names: readonly string[], given: readonly string[], members: readonly string[]): readonly (string | undefined)[] {
  const known = names.map((name) => given[Number(name.slice(1)) - 1]).map((url) => (url === undefined ? undefined : addressOf(url)));
  const others = members.filter((address) => !known.includes(address));
  const isCertain = others.length === known.filter((address) => address === undefined).length;
  return known.map((address) => address ?? (isCertain ? others.shift() : undefined));
}

export async function nodes({ locker, settings }: Context): Promise<Report> {
  // Of a name that nobody uses, each node says nothing but whether it votes.
  const { ballots } = await locker.inspect(`palisade/nodes/${randomUUID()}`);
  const { members } = await locker.members();
  const names = ballots.map(({ node }) => node);
  const addresses = addressesOf(names, settings.nodes ?? [], members);
  const known = ballots.map((ballot, at) => {
    const address = addresses[at] ?? "?";
    if (ballot.kind === "seen") return { node: ballot.node, address, state: "votes" as const };
    if (ballot.kind === "unreachable") return { node: ballot.node, address, state: "silent" as const, cause: ballot.cause };
    return { node: ballot.node, address, state: "waits" as const, readyInMs: ballot.readyInMs };
  });
  const votes = known.filter(({ state }) => state === "votes").length;
  const quorum = Math.floor(known.length / 2) + 1;
  const colours = { votes: "green", waits: "yellow", silent: "red" } as const;
  const rows = known.map(({ node, address, state, cause, readyInMs }) => [
    node,
    address,
    { text: state, colour: colours[state] },
    cause ?? (readyInMs === undefined ? "" : `for ${duration(readyInMs)} more`),
  ]);
  const said = `${votes} of ${known.length} nodes vote, ${quorum} are needed`;
  const line: Cell = votes < quorum ? { text: `${said}: no lease can be granted now`, colour: "red" } : { text: said, colour: "green" };
  const json = { nodes: known, votes, quorum };
  return {
    json,
    table: { columns: ["node", "address", "state", "why"], rows, widest: 3 },
    lines: [line],
    exitCode: votes < quorum ? 1 : 0,
  };
}

export async function doctor({ locker }: Context): Promise<Report> {
  // A node that is not reached is a finding, not a failure of the command.
  await locker.ready().catch(() => undefined);
  const findings = await locker.doctor();
  const colours = { error: "red", warning: "yellow", info: "dim" } as const;
  const lines = findings.flatMap(({ severity, node, message, remedy }): (string | Cell)[] => [
    { text: `${severity.padEnd(7)}  ${node}: ${printable(message)}`, colour: colours[severity] },
    `         ${printable(remedy)}`,
  ]);
  const errors = findings.filter(({ severity }) => severity === "error").length;
  const verdict: Cell =
    errors > 0
      ? { text: `${errors} of ${findings.length} findings are errors`, colour: "red" }
      : { text: `${findings.length === 0 ? "Nothing found" : "No error found"}`, colour: "green" };
  return { json: { findings }, lines: [...lines, verdict], exitCode: errors > 0 ? 1 : 0 };
}
