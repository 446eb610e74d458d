// `npm run faults -- --change`: no faults; members are added from three to five and removed again
// while processes of one locker each take leases. What a caller notices of it, as a picture.
import { writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { createLocker, type Locker } from "@palisade/lock";
import { RedisFleet } from "@palisade/testkit";
import { type Command, type ReportFiles, reportFiles } from "../harness/command.js";
import { page } from "../report/drawing.js";
import { type Change, changePicture, type Taken } from "../report/member-change.js";

const usage = `npm run faults -- --change [options]   members from 3 to 5 to 3 while leases are taken
  --json FILE        every lease and change as JSON
  --svg FILE         leases, tokens and waits over time
  --html FILE        the picture in a page`;

const LOCKERS = 4;
const RESOURCES = 6;
const TTL_MS = 1_000;
const BEFORE_MS = 1_500;

export const changeCommand: Command<ReportFiles> = { usage, texts: [], flags: [], read: reportFiles, perform };

async function perform({ json, svg, html }: ReportFiles): Promise<number> {
  await using fleet = await RedisFleet.start({ nodes: 5 });
  const nodes = fleet.nodes.map(({ directUrl }) => directUrl);
  const lockers = Array.from({ length: LOCKERS }, () => createLocker({ nodes: nodes.slice(0, 3), ttlMs: TTL_MS, maxTtlMs: TTL_MS }));
  const [operator] = lockers;
  if (operator === undefined) return 1;
  await Promise.all(lockers.map((locker) => locker.ready()));
  const startedAt = performance.now();
  const now = (): number => performance.now() - startedAt;
  const taken: Taken[] = [];
  const over = new AbortController();
  const work = lockers.flatMap((locker, i) =>
    Array.from({ length: RESOURCES }, (_, j) => takeLeases({ locker, resource: `${i % 2}/${j}`, taken, now, over: over.signal })),
  );
  const changes = await changeMembers(operator, nodes, now);
  over.abort();
  await Promise.all(work);
  await Promise.all(lockers.map((locker) => locker.close()));
  const failed = taken.filter(({ token }) => token === undefined).length;
  const longestMs = Math.max(...taken.map(({ waitedMs }) => waitedMs));
  console.log(`${fleet.description}\n${taken.length - failed} leases, ${failed} calls failed, longest wait ${longestMs.toFixed(0)} ms`);
  for (const { size, fromAt, untilAt } of changes) console.log(`to ${size} members within ${(untilAt - fromAt).toFixed(0)} ms`);
  const picture = changePicture({ taken, changes, endsAt: now(), headline: "Members from 3 to 5 to 3 while leases are taken" });
  if (json !== undefined) writeFileSync(json, JSON.stringify({ taken, changes }));
  if (svg !== undefined) writeFileSync(svg, picture);
  if (html !== undefined) writeFileSync(html, page("Members from 3 to 5 to 3", picture));
  return failed === 0 ? 0 : 1;
}

interface Taking {
  readonly locker: Locker;
  readonly resource: string;
  readonly taken: Taken[];
  readonly over: AbortSignal;
  now(): number;
}

async function takeLeases({ locker, resource, taken, over, now }: Taking): Promise<void> {
  while (!over.aborted) {
    const askedAt = now();
    const lease = await locker.acquire(resource).catch(() => undefined);
    taken.push({ at: now(), waitedMs: now() - askedAt, ...(lease === undefined ? {} : { token: lease.token }) });
    await lease?.release();
    await sleep(10);
  }
}

async function changeMembers(operator: Locker, nodes: readonly string[], now: () => number): Promise<Change[]> {
  const changes: Change[] = [];
  const [, , , fourth = "", fifth = ""] = nodes;
  const remove = (url: string) => ({ remove: new URL(url).host });
  for (const change of [{ add: fourth }, { add: fifth }, remove(fifth), remove(fourth)]) {
    await sleep(BEFORE_MS);
    const fromAt = now();
    const { members } = await operator.reconfigure(change);
    changes.push({ size: members.length, fromAt, untilAt: now() });
  }
  await sleep(BEFORE_MS);
  return changes;
}
