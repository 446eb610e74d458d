// The part of the leases that a reader looks at: filtered, in the order that was asked for, and
// never more than fits on a screen, so that ten thousand cost no more than a hundred. Where the
// last look at all of them is old, these few are asked about again.
import { allows, type Principal } from "../http/scopes.js";
import { visibleTo } from "./live.js";
import type { LeaseLook, SeenLease, WatchedLock } from "./lock-watch.js";
import type { LeasePage, LeaseRow } from "./messages.js";

type LeaseOrder = "name" | "ends" | "held";
type Leases = LeaseLook["leases"];

interface LeaseQuestion {
  /** Part of the name or of the holder; in any case of letters. */
  readonly search: string;
  readonly order: LeaseOrder;
  readonly from: number;
  readonly count: number;
}

const nowhere = Number.POSITIVE_INFINITY;
const orders: Readonly<Record<Exclude<LeaseOrder, "name">, (a: Leases[number], b: Leases[number]) => number>> = {
  ends: (a, b) => (a.endsAt ?? nowhere) - (b.endsAt ?? nowhere),
  held: (a, b) => a.seenAt - b.seenAt,
};
/** Each look is sorted once, for all readers. */
const sorted = new WeakMap<LeaseLook, Map<LeaseOrder, Leases>>();

interface LeaseSource {
  readonly look: LeaseLook | undefined;
  readonly lock: WatchedLock;
}

/** Of a look that is older than this the rows are asked for again. */
const FRESH_MS = 1_500;

export async function leasePage({ look, lock }: LeaseSource, principal: Principal, question: LeaseQuestion): Promise<LeasePage> {
  const { from, count, order, search } = question;
  if (look === undefined) return { look: 0, total: 0, from, rows: [] };
  const matches = search === "" && allows(principal, "observe", "") ? inOrder(look, order) : found(look, principal, question);
  const wantedRows = matches.slice(from, from + count);
  const isFresh = performance.now() - look.at < FRESH_MS;
  const rows = await Promise.all(wantedRows.map((lease) => (isFresh ? rowOf(lease, lease) : askedAgain(lock, lease))));
  return { look: look.look, total: matches.length, from, rows };
}

function found(look: LeaseLook, principal: Principal, { search, order }: LeaseQuestion): Leases {
  const isVisible = visibleTo(principal);
  const wanted = search.toLowerCase();
  return inOrder(look, order).filter(
    (lease) => isVisible(lease) && (lease.resource.toLowerCase().includes(wanted) || lease.holder?.toLowerCase().includes(wanted) === true),
  );
}

async function askedAgain(lock: WatchedLock, lease: SeenLease): Promise<LeaseRow> {
  const found = await lock.inspect(lease.resource).catch(() => undefined);
  if (found === undefined) return rowOf(lease, lease);
  const endsAt = found.remainingMs === undefined ? undefined : performance.now() + found.remainingMs;
  return rowOf(lease, { ...found, endsAt });
}

/** Another token is another lease, which began after the look. */
function rowOf(lease: SeenLease, now: Pick<LeaseRow, "state" | "token"> & Partial<Pick<SeenLease, "holder" | "endsAt">>): LeaseRow {
  const { state, holder = "", token, endsAt } = now;
  const at = performance.now();
  const seenForMs = token === lease.token ? Math.round(at - lease.seenAt) : 0;
  return {
    resource: lease.resource,
    state,
    holder,
    token,
    endsInMs: endsAt === undefined ? undefined : Math.round(endsAt - at),
    seenForMs,
  };
}

function inOrder(look: LeaseLook, order: LeaseOrder): Leases {
  if (order === "name") return look.leases;
  const known = sorted.get(look) ?? new Map<LeaseOrder, Leases>();
  sorted.set(look, known);
  const found = known.get(order) ?? look.leases.toSorted(orders[order]);
  known.set(order, found);
  return found;
}
