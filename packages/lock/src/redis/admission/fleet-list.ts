// What a locker over several fleets asks of one of them: which list of fleets its nodes have agreed
// on, how far its tokens have come, and the next list.
import type { ChangeLimits } from "../../protocol/change-limits.js";
import type { FleetListing, ListStep, LongestStep, Standing } from "../../protocol/fleet-list.js";
import type { RedisNode } from "../node.js";
import { isAdmitted, mark } from "../node-record.js";
import { forgottenLeasesEndMs, longestLeaseMs } from "../roster.js";
import { reconfigure } from "./reconfigure.js";
import { type AdmissionSettings, answered, type ReadStatus, readStatuses } from "./steps.js";

/** Of the nodes of one fleet, in the order in which they were reached. */
export interface Meetings {
  times: number;
  /** By node: the number of the last one. */
  readonly last: Map<string, number>;
}

interface Looking {
  readonly met: Meetings;
  /** Every node was reached once, or could not be. */
  readonly settled: Promise<void>;
  readonly onNews: () => void;
}

export function listingOf(settings: AdmissionSettings, looking: Looking): FleetListing {
  const { fleet } = settings;
  const { met, onNews } = looking;
  return {
    get timesMet() {
      return met.times;
    },
    isBackSince(timesMet) {
      // Read before every acquisition.
      if (timesMet === met.times) return false;
      const up = fleet.members.filter(({ connection }) => connection.isUp);
      const steady = up.filter(({ name }) => (met.last.get(name) ?? 0) <= timesMet);
      return isMost(up, fleet.members) && !isMost(steady, fleet.members);
    },
    get id() {
      return fleet.fleet;
    },
    get list() {
      return fleet.roster?.fleets;
    },
    lookAgain: () => lookAgain(settings, looking),
    standing: () => standingOf(settings, onNews),
    async change(step: ListStep | LongestStep, limits: ChangeLimits) {
      await reconfigure(settings, { change: step, limits });
    },
  };
}

function isMost(some: readonly RedisNode[], all: readonly RedisNode[]): boolean {
  return some.length * 2 > all.length;
}

/**
 * A newer list is in use only after most members have left the generation before it for good. So
 * where most of them vote in this one, none was when they were asked, whatever the others say.
 */
function lookAgain(settings: AdmissionSettings, { settled, onNews }: Looking): Promise<void> {
  const { fleet } = settings;
  const votes = new Map<RedisNode, string | undefined>();
  return new Promise((resolve, reject) => {
    const hear = async (node: RedisNode): Promise<void> => {
      await node.met();
      const [read] = await readStatuses(settings, [node]);
      onNews();
      if (read === undefined || !isAdmitted(read.status)) return;
      votes.set(node, read.status.admission?.generation);
      const voters = fleet.members.filter((member) => votes.has(member) && votes.get(member) === fleet.generation);
      if (fleet.roster !== undefined && isMost(voters, fleet.members)) resolve();
    };
    void Promise.all([settled, ...fleet.all.map(hear)]).then(() => resolve(), reject);
  });
}

async function standingOf(settings: AdmissionSettings, onNews: () => void): Promise<Standing | undefined> {
  const { fleet } = settings;
  const statuses = await readStatuses(settings);
  onNews();
  const roster = fleet.nameMembers();
  if (roster === undefined || fleet.fleet === undefined) return undefined;
  const maxTtlMs = longestLeaseMs(roster);
  const longestMs = forgottenLeasesEndMs(maxTtlMs);
  const majority = Math.floor(roster.members.length / 2) + 1;
  const voters = statuses.filter(
    ({ node, status }) => fleet.members.includes(node) && isAdmitted(status) && status.admission?.generation === fleet.generation,
  );
  const marks = await marksOf(settings, voters);
  if (marks === undefined || voters.length < majority) return undefined;
  return {
    id: fleet.fleet,
    list: roster.fleets,
    // Each of them entered this generation above the tokens of the one before.
    floor: Math.max(...voters.map(({ status }) => status.floor ?? 0)),
    marks,
    outwaitMs: Math.max(0, longestMs - fleet.knownForMs),
    maxTtlMs,
    longestMs,
    members: roster.members.map(({ address }) => address),
  };
}

/** The highest that a majority of the voters tells, in the generation that is known here. */
async function marksOf(
  { fleet, keys }: AdmissionSettings,
  voters: readonly ReadStatus[],
): Promise<ReadonlyMap<string, number> | undefined> {
  const highest = new Map<string, number>();
  let told = 0;
  await Promise.all(
    voters.map(async ({ node }) => {
      const stored = await answered(() => node.connection.run(mark(keys, new Map())), node);
      if (stored === undefined) return;
      node.noteAdmitted(stored.admitted);
      if (!node.isVoter) return;
      told++;
      for (const [name, number] of stored.marks) highest.set(name, Math.max(number, highest.get(name) ?? 0));
    }),
  );
  return told > fleet.members.length / 2 ? highest : undefined;
}
