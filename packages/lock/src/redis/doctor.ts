// What is wrong, or risky, with how the nodes are configured; each finding names the node and the
// remedy. Takes a lock of its own on each node and releases it, and changes nothing else: every
// command of the requests is executed, so a missing right shows. No caller uses or awaits that lock.
import type { Clock } from "../platform/clock.js";
import type { Ballot } from "../protocol/ballot.js";
import type { Finding, FleetRefusal } from "../protocol/fleet.js";
import { TOKENS_PER_MS } from "../protocol/token.js";
import { isDurable, readStatuses } from "./admission/steps.js";
import { causeOf } from "./connection.js";
import type { RedisFleet } from "./fleet.js";
import type { RedisNode } from "./node.js";
import { isAdmitted, type NodeStatus, status, untoldOf } from "./record.js";

type Report = (severity: Finding["severity"], code: string, said: Pick<Finding, "message" | "remedy">) => void;

const SKEW_MS = 1_000;
/** How long a node may take to confirm a subscription. */
const LISTENING_MS = 1_000;

const refusalRemedies: Readonly<Record<FleetRefusal["code"], string>> = {
  unknown_format: "Upgrade this process: the fleet was written by a newer version.",
  same_server: "Configure each server once.",
  fleet_mismatch: "Give every locker of this namespace the same nodes, or use another namespace.",
  max_ttl: "Ask for shorter leases here, or found a new fleet under another namespace.",
};

/** Asks every node, all at once. Never rejects. */
export async function probeFleet(fleet: RedisFleet): Promise<readonly Finding[]> {
  const findings: Finding[] = [...fleetFindings(fleet)];
  const [left, ...perNode] = await Promise.all([untoldFindings(fleet), ...fleet.members.map((node) => probeNode(fleet, node))]);
  return findings.concat(left, ...perNode);
}

async function untoldFindings(fleet: RedisFleet): Promise<readonly Finding[]> {
  const statuses = await readStatuses(fleet, fleet.members);
  const untold = untoldOf(statuses.flatMap(({ status: seen }) => seen.roster ?? []));
  return untold.map(({ address, generation }) => ({
    severity: "info",
    node: "fleet",
    code: "untold",
    message: `${address} left with generation ${generation} and could not be told: with the disk it had, it may vote for processes with an old list, beside this fleet`,
    remedy: `Wipe it or switch it off for good, and give every process the present members; or start it and call reconfigure({ remove: "${address}" }) again.`,
  }));
}

function fleetFindings(fleet: RedisFleet): readonly Finding[] {
  const findings: Finding[] = [];
  const report = reporter(findings, "fleet");
  const { refusal, difference: message } = fleet;
  if (refusal !== undefined)
    report("error", refusal.code, {
      message: refusal.message,
      remedy: refusalRemedies[refusal.code],
    });
  if (message !== undefined)
    report("warning", "members", {
      message: `${message}; this process goes on with those that it can reach`,
      remedy: "Give this process the members of the fleet as its nodes.",
    });
  const nodes = fleet.members;
  if (nodes.length % 2 === 0) {
    const tolerated = nodes.length / 2 - 1;
    report("info", "even_size", {
      message: `${nodes.length} nodes tolerate ${tolerated} failures, as many as ${nodes.length - 1} do`,
      remedy: "Use an odd number of nodes.",
    });
  }
  return findings;
}

async function probeNode(fleet: RedisFleet, node: RedisNode): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  const report = reporter(findings, node.name);
  if (!node.connection.isUp) {
    reportUnreachable(report, node, node.connection.cause);
    return findings;
  }
  if (node.exclusion !== undefined && fleet.refusal === undefined)
    report("error", "fleet_mismatch", {
      message: `it has no vote: ${node.exclusion}`,
      remedy: "Correct its address, or clear the server that answers there.",
    });
  try {
    const askedAt = fleet.clock.wallMs();
    const seen = await node.connection.run(status);
    checkClock(report, seen, { askedAt, answeredAt: fleet.clock.wallMs() });
    checkFloor(report, seen, fleet.clock.wallMs());
    checkAdmission(report, node, fleet);
    await checkSettings(report, node, seen);
    const isProbed = isAdmitted(seen) && !node.isExcluded;
    const cause = isProbed ? await probeLock(node, fleet.clock, LISTENING_MS) : undefined;
    if (cause !== undefined) reportUnreachable(report, node, cause);
  } catch (error) {
    reportUnreachable(report, node, causeOf(error));
  }
  if (node.subscriptionTrouble !== undefined) {
    report("warning", "subscription", {
      message: `releases are not heard: ${node.subscriptionTrouble}`,
      remedy: "Allow SUBSCRIBE on the channels {namespace}:inbox:*.",
    });
  }
  return findings;
}

function checkClock(
  report: Report,
  seen: NodeStatus,
  { askedAt, answeredAt }: { readonly askedAt: number; readonly answeredAt: number },
): void {
  const aheadMs = seen.timeMs > answeredAt ? seen.timeMs - answeredAt : Math.min(0, seen.timeMs - askedAt);
  if (Math.abs(aheadMs) < SKEW_MS) return;
  const direction = aheadMs > 0 ? "ahead of" : "behind";
  report("warning", "clock_skew", {
    message: `its clock is ${Math.abs(Math.round(aheadMs))} ms ${direction} ours`,
    remedy:
      "Synchronise the clocks (chrony, ntpd) by slewing. Tokens do not depend on it; times to live change while a clock is being set.",
  });
}

/** New tokens begin at the clock's when all memory is lost. */
function checkFloor(report: Report, { floor = 0 }: NodeStatus, nowMs: number): void {
  const aheadBy = floor - nowMs * TOKENS_PER_MS;
  if (aheadBy < SKEW_MS * TOKENS_PER_MS) return;
  report("warning", "floor_ahead", {
    message: `its tokens are ${aheadBy} ahead of ${TOKENS_PER_MS} times the Unix time in milliseconds: more than ${TOKENS_PER_MS * 1_000} a second were spent, and after a total loss they would start so far below`,
    remedy: "Take fewer leases, or use the store's fences to find the highest token after a total loss.",
  });
}

function checkAdmission(report: Report, node: RedisNode, { blockedBecause }: RedisFleet): void {
  if (!node.isQuarantined) return;
  const refusal = node.blockedBecause;
  if (refusal !== undefined && troubleOf(refusal) !== undefined) {
    reportUnreachable(report, node, refusal);
    return;
  }
  const wait = node.readyInMs === undefined ? "" : `, admitted in ${node.readyInMs} ms at the earliest`;
  const why = blockedBecause === undefined ? "" : `: ${blockedBecause}`;
  report("warning", "quarantined", {
    message: `its memory is not believed, so it does not vote${wait}${why}`,
    remedy: "Wait, or bring the other nodes back.",
  });
}

async function checkSettings(report: Report, node: RedisNode, seen: NodeStatus): Promise<void> {
  let policy: string | undefined;
  let limit: string | undefined;
  try {
    [policy, limit] = await Promise.all([node.connection.setting("maxmemory-policy"), node.connection.setting("maxmemory")]);
  } catch (error) {
    report("info", "settings_hidden", {
      message: `its settings cannot be read (${causeOf(error)})`,
      remedy: "Allow CONFIG GET, or check eviction and persistence by hand.",
    });
    return;
  }
  if (policy !== undefined && policy !== "noeviction") {
    const now = limit === "0" ? "; no memory limit is set, so nothing is evicted yet" : "";
    report(limit === "0" ? "warning" : "error", "eviction_policy", {
      message: `maxmemory-policy is ${policy}: under memory pressure it deletes locks that are held, and counters${now}`,
      remedy: "CONFIG SET maxmemory-policy noeviction, and in the server's configuration.",
    });
  }
  if (seen.isReplicated) {
    report("info", "replicated", {
      message:
        "a replica may take its place: asynchronous replication loses grants, so after a failover it does not vote until it has caught up",
      remedy: "None is needed; replicas add nothing that the other nodes do not give.",
    });
  } else if (!(await isDurable(node, seen))) {
    report("info", "not_durable", {
      message: "it may forget what it answered: after a restart it does not vote until it has caught up",
      remedy: "For a restart without that wait: appendonly yes, appendfsync always, no-appendfsync-on-rewrite no.",
    });
  } else if (!seen.wasDurable && !node.isQuarantined) {
    report("info", "not_durable", {
      message: "it is durable now but was not when it was admitted, so its next restart counts as a loss of memory",
      remedy: "None is needed.",
    });
  }
}

/** A node that cannot be asked, by the beginning of the cause. */
const troubles: readonly (readonly [cause: string, code: string, remedy: string])[] = [
  ["READONLY", "replica", "Give the address of the master, or promote this server."],
  ["WRONGPASS", "password", "Correct user name and password of this node."],
  ["NOAUTH", "password", "Give user name and password of this node."],
  [
    "NOPERM",
    "acl",
    "Allow the user the commands of the lock's scripts (docs/operating.md lists them), the keys {namespace}:* and those channels.",
  ],
  ["MISCONF", "refuses_writes", "Let the server save again: look at its log and its disk."],
  ["OOM", "refuses_writes", "Give the server more memory, or remove what is not the lock's."],
  ["NOREPLICAS", "refuses_writes", "CONFIG SET min-replicas-to-write 0: the lock needs no replicas."],
  ["version", "version", "Upgrade it to Redis 7 or newer, or to Valkey."],
  ["garbage", "not_redis", "Check host and port: something else answers there."],
];

const troubleOf = (cause: string) => troubles.find(([start]) => cause.startsWith(start));

function reportUnreachable(report: Report, { address }: RedisNode, cause: string): void {
  const [, code, remedy] = troubleOf(cause) ?? [];
  report("error", code ?? "unreachable", {
    message: `${address}: ${cause}`,
    remedy: remedy ?? "Start it, or correct its address; check the network between.",
  });
}

function reporter(findings: Finding[], node: string): Report {
  return (severity, code, said) => findings.push({ severity, node, code, ...said });
}

const RESOURCE = "palisade:doctor";
const TTL_MS = 2_000;
const TICKET = ":doctor";
/** A node's floor runs ahead of a counter by less: a token above it makes the node store one. */
const AHEAD = 8;

/** Why the node could not do all of it, by the cause of a ballot; undefined if it could. */
export async function probeLock(node: RedisNode, clock: Clock, forMs: number): Promise<string | undefined> {
  const asking = () => ({ resources: [RESOURCE], owner: clock.secret(), label: "doctor", ttlMs: TTL_MS });
  const mine = asking();
  const stop = await listen(node, clock, forMs);
  const ballots: Ballot[] = [];
  const granted = await node.ask("grant", mine);
  ballots.push(granted);
  if (granted.kind === "granted") {
    // Refused, it gets a ticket, to which the release hands over.
    const wait = { sinceMs: clock.wallMs(), waitedMs: 0, ticket: TICKET, reserveMs: TTL_MS };
    ballots.push(
      await node.ask("claim", { ...asking(), wait }),
      await node.ask("extend", mine),
      await node.ask("inspect", { resources: [RESOURCE], ticket: TICKET }),
    );
    ballots.push(await node.ask("seal", { ...mine, token: granted.token + AHEAD }));
  }
  ballots.push(await node.ask("release", { ...mine, tells: true }), await node.ask("leave", { resources: [RESOURCE], ticket: TICKET }));
  stop();
  const [cause] = ballots.flatMap((ballot) => (ballot.kind === "unreachable" && !ballot.unsent ? [ballot.cause] : []));
  return cause;
}

/** The returned function ends it. */
function listen(node: RedisNode, clock: Clock, forMs: number): Promise<() => void> {
  return new Promise((resolve) => {
    const heard = (): void => {
      clock.clearTimer(timer);
      resolve(() => stop());
    };
    const timer = clock.setTimer(forMs, heard);
    const stop = node.onReleased(RESOURCE, { released() {}, deaf() {}, listening: heard });
  });
}
