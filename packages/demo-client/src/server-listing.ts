// How the running servers are shown to a reader. Decides only the wording.
import pc from "picocolors";
import type { Servers } from "./servers.js";

export function describeServers({ redis, postgres, startedInMs }: Servers): string {
  return [
    pc.bold(`real servers, up in ${startedInMs} ms`),
    `  ${redis.description}`,
    `  ${postgres.description}`,
    "",
    ...redis.nodes.map((node) => `  ${pc.dim(node.name.padEnd(9))}${node.url}`),
    `  ${pc.dim("postgres ")}${postgres.url}`,
    "",
  ].join("\n");
}
