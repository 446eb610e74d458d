// What happens to the network: to some ways at once, healed after a while. Faults that meet on one way add up, and the first to heal heals all.
import { setTimeout as sleep } from "node:timers/promises";
import type { FaultProxy } from "@palisade/testkit";
import type { FaultLog, Place } from "../../faults/fault-log.js";
import type { FaultKind, LinkFault } from "./schedule.js";

const breakings: Readonly<Record<LinkFault, (way: FaultProxy) => unknown>> = {
  partitioned: (way) => way.partition(),
  slow: (way) => way.slow(40),
  "replies dropped": (way) => way.dropReplies(),
  "requests dropped": (way) => way.dropRequests(),
  "replies held": (way) => way.holdReplies(),
  // They arrive when it heals: late, and perhaps from clients that are gone.
  "requests held": (way) => way.holdRequests(),
  refused: (way) => way.refuse(),
  cut: (way) => way.cut(),
};

export interface LinkStrike {
  readonly kind: FaultKind;
  readonly place: Place;
  readonly how: LinkFault;
  readonly ways: readonly { readonly target: string; readonly way: FaultProxy | undefined }[];
  readonly lastsMs: number;
}

export async function strikeLinks(log: FaultLog, { kind, place, how, ways, lastsMs }: LinkStrike): Promise<void> {
  const targets = [...new Set(ways.map(({ target }) => target))].join(", ");
  const end = log.begin({ kind: `${kind} ${how}`, place, target: targets });
  const proxies = ways.map(({ way }) => way).filter((way) => way !== undefined);
  await Promise.all(proxies.map((way) => breakings[how](way)));
  await sleep(how === "cut" ? 1 : lastsMs);
  await Promise.all(proxies.map((way) => way.heal()));
  end();
}
