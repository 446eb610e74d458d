// The commands about the nodes themselves: nodes and doctor.
import type { NodeInspection } from "@palisade/lock";
import type { Context } from "../context.js";
import type { Cell, Report } from "../report.js";
import { duration, printable } from "../text.js";

/** As the doctor's. */
const SKEW_MS = 1_000;

export async function nodes({ locker }: Context): Promise<Report> {
  const known = await locker.fleet.nodes();
  const votes = known.filter(({ state }) => state === "votes").length;
  const quorum = Math.floor(known.length / 2) + 1;
  const colours = { votes: "green", waits: "yellow", silent: "red" } as const;
  const rows = known.map((node) => [
    node.node,
    node.address,
    { text: node.state, colour: colours[node.state] },
    node.latencyMs === undefined ? "" : `${node.latencyMs.toFixed(1)} ms`,
    clockCell(node),
    memoryCell(node),
    node.durable === undefined ? "" : node.durable ? "yes" : "no",
    node.version ?? "",
    whyOf(node),
  ]);
  const said = `${votes} of ${known.length} nodes vote, ${quorum} are needed`;
  const line: Cell = votes < quorum ? { text: `${said}: no lease can be granted now`, colour: "red" } : { text: said, colour: "green" };
  return {
    json: { nodes: known, votes, quorum },
    table: { columns: ["node", "address", "state", "latency", "clock", "memory", "durable", "server", "why"], rows, widest: 8 },
    lines: [line],
    exitCode: votes < quorum ? 1 : 0,
  };
}

/** How far ahead of this machine's clock, or behind, and how sure that is. */
function clockCell({ clockAheadMs, clockUncertaintyMs }: NodeInspection): string | Cell {
  if (clockAheadMs === undefined || clockUncertaintyMs === undefined) return "";
  const sign = clockAheadMs < 0 ? "-" : "+";
  const text = `${sign}${Math.abs(clockAheadMs).toFixed(0)} ms ±${Math.ceil(clockUncertaintyMs)}`;
  return Math.abs(clockAheadMs) - clockUncertaintyMs > SKEW_MS ? { text, colour: "yellow" } : text;
}

/** Anything but noeviction deletes locks that are held. */
function memoryCell({ memory }: NodeInspection): string | Cell {
  if (memory === undefined) return "";
  const { usedBytes, limitBytes, evictionPolicy } = memory;
  const used = `${megabytes(usedBytes)}${limitBytes === undefined ? " MB, no limit" : ` of ${megabytes(limitBytes)} MB`}`;
  if (evictionPolicy === "noeviction") return used;
  return { text: `${used}, ${evictionPolicy}`, colour: limitBytes === undefined ? "yellow" : "red" };
}

function megabytes(bytes: number): string {
  return (bytes / 2 ** 20).toFixed(1);
}

function whyOf({ reason, readyInMs, hidden }: NodeInspection): string {
  const wait = readyInMs === undefined ? [] : [`for ${duration(readyInMs)} more`];
  return [...(reason === undefined ? [] : [reason]), ...wait, ...(hidden === undefined ? [] : [`hides ${hidden}`])].join(", ");
}

export async function doctor({ locker }: Context): Promise<Report> {
  // A node that is not reached is a finding, not a failure of the command.
  await locker.ready().catch(() => undefined);
  const findings = await locker.fleet.doctor();
  const colours = { error: "red", warning: "yellow", info: "dim" } as const;
  // One thing once, with all the nodes of which it is said, and a remedy once, below all that it mends.
  const lines = grouped(findings, ({ severity, remedy }) => `${severity} ${remedy}`).flatMap((alike): (string | Cell)[] => [
    ...grouped(alike, ({ message }) => message).map((same): Cell => {
      const [{ severity, message }] = same;
      const text = `${severity.padEnd(7)}  ${same.map(({ node }) => node).join(", ")}: ${printable(message)}`;
      return { text, colour: colours[severity] };
    }),
    `         ${printable(alike[0].remedy)}`,
  ]);
  const errors = findings.filter(({ severity }) => severity === "error").length;
  const verdict: Cell =
    errors > 0
      ? { text: `${errors} of ${findings.length} findings are errors`, colour: "red" }
      : { text: `${findings.length === 0 ? "Nothing found" : "No error found"}`, colour: "green" };
  return { json: { findings }, lines: [...lines, verdict], exitCode: errors > 0 ? 1 : 0 };
}

type Some<Item> = [Item, ...Item[]];

/** In the order of the first of each. */
function grouped<Item>(items: readonly Item[], by: (item: Item) => string): readonly Some<Item>[] {
  const groups = new Map<string, Some<Item>>();
  for (const item of items) {
    const group = groups.get(by(item));
    if (group === undefined) groups.set(by(item), [item]);
    else group.push(item);
  }
  return [...groups.values()];
}
