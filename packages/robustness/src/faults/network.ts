// Faults of the network: some links break together and heal after a while. Faults that meet on one
// link add up, and the first to heal heals all.
import { setTimeout as sleep } from "node:timers/promises";
import type { FaultProxy } from "@palisade/testkit";
import type { Fault, FaultLog } from "./fault-log.js";

const breakings = {
  partitioned: (link: FaultProxy) => link.partition(),
  slow: (link: FaultProxy, slowMs: number) => link.slow(slowMs),
  "replies dropped": (link: FaultProxy) => link.dropReplies(),
  "requests dropped": (link: FaultProxy) => link.dropRequests(),
  "replies held": (link: FaultProxy) => link.holdReplies(),
  // They arrive when it heals: late, and perhaps from clients that are gone.
  "requests held": (link: FaultProxy) => link.holdRequests(),
  refused: (link: FaultProxy) => link.refuse(),
  cut: (link: FaultProxy) => link.cut(),
};

export type LinkFault = keyof typeof breakings;
export const linkFaults = Object.keys(breakings) as LinkFault[];

export interface Link {
  readonly target: string;
  readonly proxy: FaultProxy;
}

interface Breakage extends Pick<Fault, "kind" | "place"> {
  readonly how: LinkFault;
  readonly slowMs: number;
  readonly lastsMs: number;
}

export async function breakLinks(log: FaultLog, links: readonly Link[], { kind, place, how, slowMs, lastsMs }: Breakage): Promise<void> {
  const target = [...new Set(links.map((link) => link.target))].join(", ");
  const end = log.begin({ kind: `${kind} ${how}`, place, target });
  await Promise.all(links.map(({ proxy }) => breakings[how](proxy, slowMs)));
  await sleep(how === "cut" ? 1 : lastsMs);
  await Promise.all(links.map(({ proxy }) => proxy.heal()));
  end();
}
