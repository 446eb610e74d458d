// The commands about the nodes themselves: nodes and doctor.
import type { Context } from "../context.js";
import type { Cell, Report } from "../report.js";
import { duration, printable } from "../text.js";

export async function nodes({ locker }: Context): Promise<Report> {
  const known = await locker.nodes();
  const votes = known.filter(({ state }) => state === "votes").length;
  const quorum = Math.floor(known.length / 2) + 1;
  const colours = { votes: "green", waits: "yellow", silent: "red" } as const;
  const rows = known.map(({ node, address, state, reason, readyInMs }) => [
    node,
    address,
    { text: state, colour: colours[state] },
    [...(reason === undefined ? [] : [reason]), ...(readyInMs === undefined ? [] : [`for ${duration(readyInMs)} more`])].join(", "),
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
