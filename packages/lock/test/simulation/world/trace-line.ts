// Lines of a trace, for people: a script call with its resources and its answer, and an event of a
// locker. What is the same in every line is left out.
import type { NodeEvent } from "#lock/protocol/events.js";
import type { Executed } from "../server/sim-server.js";

/** The field `admitted` of a record: run_id, counter floor, epoch. */
const ADMITTED = /n\dlife(\d+)x+\d{15}([\w-]+)/g;
const RUN_ID = /n\dlife(\d+)x+/g;

/** undefined: the call only loads the script. */
export function callLine({ name, keys, args, reply }: Executed): string | undefined {
  const resources = keys.filter((key) => key.includes(":lock:")).map((key) => key.slice(key.indexOf(":lock:") + ":lock:".length));
  if (args.length === 0 && name !== "status") return undefined;
  const said = args.filter((arg) => !arg.match(ADMITTED)).join(" ");
  const answer = JSON.stringify(reply).replace(ADMITTED, "epoch $2 of life $1").replace(RUN_ID, "life $1");
  return `${[name, ...resources].join(" ")} (${said.replace(RUN_ID, "life $1").replaceAll("\n", "+")}) → ${answer.replaceAll("\\n", "+")}`;
}

/** An event that a locker reports of its nodes. */
export function eventLine({ kind, ...rest }: NodeEvent): string {
  const details = Object.entries(rest).filter(([name]) => name !== "address");
  return [kind.replaceAll("_", " "), ...details.map(([name, value]) => `${name === "node" ? "" : `${name} `}${value}`)].join(" ");
}
