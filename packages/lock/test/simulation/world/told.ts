// A script call in one line of a trace, for people: whose question about which resources, and what came of it. Leaves out what is the same in every line.
import type { NodeEvent } from "#lock/protocol/events.js";
import type { Executed } from "../server/sim-server.js";

/** The field of a record: a life, a base, an epoch. */
const belief = /n\dlife(\d+)x+\d{15}([\w-]+)/g;
const life = /n\dlife(\d+)x+/g;

/** undefined: the server only learns the script. */
export function toldCall({ name, keys, args, reply }: Executed): string | undefined {
  const resources = keys.filter((key) => key.includes(":lock:")).map((key) => key.slice(key.indexOf(":lock:") + ":lock:".length));
  if (args.length === 0 && name !== "status") return undefined;
  const said = args.filter((arg) => !arg.match(belief)).join(" ");
  const answer = JSON.stringify(reply).replace(belief, "epoch $2 of life $1").replace(life, "life $1");
  return `${[name, ...resources].join(" ")} (${said.replace(life, "life $1").replaceAll("\n", "+")}) → ${answer.replaceAll("\\n", "+")}`;
}

/** What a locker reports of its nodes. */
export function toldEvent({ kind, ...rest }: NodeEvent): string {
  const details = Object.entries(rest).filter(([name]) => name !== "address");
  return [kind.replaceAll("_", " "), ...details.map(([name, value]) => `${name === "node" ? "" : `${name} `}${value}`)].join(" ");
}
