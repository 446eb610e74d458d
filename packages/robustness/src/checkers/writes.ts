// What the store kept of each resource, each change beside the call that asked for it, and the
// promises about it: G1 to G4, and that no update is lost.
import {
  type Document,
  type Entry,
  groupedBy,
  type History,
  highestBefore,
  type LeaseRecord,
  type Operation,
  successor,
  type Violation,
} from "../history.js";

export interface Kept {
  readonly entry: Entry;
  readonly operation: Operation;
}

export interface StoredWrites {
  readonly name: string;
  /** Of this resource only. */
  readonly operations: readonly Operation[];
  /** In the order of revisions. */
  readonly kept: readonly Kept[];
  /** By the name of the write. */
  readonly keptById: ReadonlyMap<string, readonly Kept[]>;
  /** Changes that no client asked for. */
  readonly strays: readonly Entry[];
}

export function isWrite({ kind }: Operation): boolean {
  return kind === "put" || kind === "patch" || kind === "delete" || kind === "guarded";
}

export function described({ id, kind, token, seq, outcome, code }: Operation): string {
  const place = token === undefined ? "" : ` with token ${token}${seq === undefined ? "" : `;seq=${seq}`}`;
  return `${kind} ${id}${place} (${outcome}${code === undefined ? "" : `, ${code}`})`;
}

export function storedWrites({ operations, entries }: Pick<History, "operations" | "entries">): StoredWrites[] {
  const entriesOf = groupedBy(entries, ({ resource }) => resource);
  const operationsOf = groupedBy(operations, ({ resource }) => resource);
  const names = new Set([...entriesOf.keys(), ...operationsOf.keys()]);
  return [...names].sort().map((name) => {
    const own = operationsOf.get(name) ?? [];
    const byId = new Map(own.filter(isWrite).map((operation) => [operation.id, operation]));
    const byPlace = new Map(own.filter(isWrite).map((operation) => [`${operation.token};${operation.seq}`, operation]));
    const askedFor = ({ by, token, seq }: Entry): Operation | undefined =>
      by === undefined ? byPlace.get(`${token};${seq}`) : byId.get(by);
    const inOrder = [...(entriesOf.get(name) ?? [])].sort((a, b) => a.rev - b.rev);
    const kept = inOrder.flatMap((entry): Kept[] => {
      const operation = askedFor(entry);
      return operation === undefined ? [] : [{ entry, operation }];
    });
    const keptById = groupedBy(kept, ({ operation }) => operation.id);
    return { name, operations: own, kept, keptById, strays: inOrder.filter((entry) => askedFor(entry) === undefined) };
  });
}

export function brokenWrites(history: History, resources: readonly StoredWrites[]): Violation[] {
  const leasesOf = groupedBy(history.leases, ({ resource }) => resource);
  return [
    ...resources.flatMap((resource) => [
      ...brokenFence(resource, leasesOf.get(resource.name) ?? []),
      ...unbelievableAnswers(resource),
      ...lostUpdates(resource, history),
    ]),
    ...halfTransactions(resources),
    ...acceptedIntruders(history),
  ];
}

function wrong(promise: Violation["promise"], operation: Operation, how: string): Violation {
  const { resource, sentAt } = operation;
  return { promise, resource, at: sentAt, what: `${resource}: ${described(operation)} ${how}` };
}

/**
 * G1: an answer with a token keeps out every lower token, by the order of revisions and by the
 * clock; and a call is stale only where a newer token exists.
 */
function brokenFence(resource: StoredWrites, leases: readonly LeaseRecord[]): Violation[] {
  return [...byRevision(resource), ...byTime(resource), ...groundless(resource, leases)];
}

/** After a write or seal answered with success, only its token or higher ones are stored. */
function byRevision({ operations, kept }: StoredWrites): Violation[] {
  const writes = kept.map(({ entry: { rev, token }, operation }) => ({ rev, token, operation }));
  const seals = operations.flatMap((operation) => {
    const { kind, outcome, rev, token } = operation;
    return kind === "seal" && outcome === "done" && rev !== undefined && token !== undefined ? [{ rev, token, operation }] : [];
  });
  const raises = [...writes, ...seals].sort((a, b) => a.rev - b.rev);
  const highest = highestBefore(raises, kept, { isBefore: (raise, { entry }) => raise.rev < entry.rev, height: ({ token }) => token });
  return kept.flatMap(({ entry, operation }, i) => {
    const raise = highest[i];
    if (raise === undefined || entry.token >= raise.token) return [];
    return wrong("G1", operation, `became revision ${entry.rev}, after ${described(raise.operation)} at revision ${raise.rev}`);
  });
}

/** What was sent after a higher token had been answered with success is not accepted. */
function byTime({ operations }: StoredWrites): Violation[] {
  const done = operations.filter(({ outcome, token, kind }) => outcome === "done" && token !== undefined && kind !== "get");
  const byAnswer = [...done].sort((a, b) => a.answeredAt - b.answeredAt);
  const bySending = [...done].sort((a, b) => a.sentAt - b.sentAt);
  const highest = highestBefore(byAnswer, bySending, { isBefore: (a, b) => a.answeredAt < b.sentAt, height: tokenOf });
  return bySending.flatMap((operation, i) => {
    const earlier = highest[i];
    if (earlier === undefined || tokenOf(operation) >= tokenOf(earlier)) return [];
    return wrong("G1", operation, `was accepted, although ${described(earlier)} had been answered before it was sent`);
  });
}

/** A stale answer needs a lease with a higher token; in a transaction, another part may have it. */
function groundless({ operations }: StoredWrites, leases: readonly LeaseRecord[]): Violation[] {
  const byBeginning = [...leases].sort((a, b) => a.beganAt - b.beganAt);
  const stale = operations
    .filter(({ code, group }) => code === "fencing_token_stale" && group === undefined)
    .filter((operation) => isWrite(operation) || operation.kind === "seal")
    .sort((a, b) => a.answeredAt - b.answeredAt);
  const highest = highestBefore(byBeginning, stale, { isBefore: (a, b) => a.beganAt < b.answeredAt, height: ({ token }) => token });
  return stale.flatMap((operation, i) =>
    (highest[i]?.token ?? 0) > tokenOf(operation) ? [] : wrong("G1", operation, "is stale, and there was no newer token"),
  );
}

function tokenOf({ token }: Operation): number {
  return token ?? 0;
}

/** G3. done: stored exactly once, as told. refused: not stored. unknown: stored at most once. */
function unbelievableAnswers({ name, operations, keptById, strays }: StoredWrites): Violation[] {
  const nobodys = strays.map(({ rev, token, seq }): Violation => {
    const what = `${name}: revision ${rev} (token ${token}, seq ${seq}) is stored, and no client with a lease asked for it`;
    return { promise: "G3", resource: name, what };
  });
  const answers = operations.filter(isWrite).flatMap((operation) => {
    const { id, outcome, rev: told } = operation;
    const revs = (keptById.get(id) ?? []).map(({ entry }) => entry.rev);
    const [rev] = revs;
    if (revs.length > 1) return wrong("G3", operation, `is stored ${revs.length} times, as revisions ${revs.join(", ")}`);
    if (outcome === "done" && rev === undefined) return wrong("G3", operation, "was answered with success and is not stored");
    if (outcome === "done" && told !== rev) return wrong("G3", operation, `was told to be revision ${told} and is ${rev}`);
    if (outcome === "refused" && rev !== undefined) return wrong("G3", operation, `was refused and is stored as revision ${rev}`);
    return [];
  });
  return [...nobodys, ...answers];
}

/** G3: the writes of a transaction are all stored or none. */
function halfTransactions(resources: readonly StoredWrites[]): Violation[] {
  const parts = resources.flatMap(({ operations, keptById }) =>
    operations.filter(({ group }) => group !== undefined).map((operation) => ({ operation, isKept: keptById.has(operation.id) })),
  );
  return [...groupedBy(parts, ({ operation }) => operation.group)].flatMap(([group, members]): Violation[] => {
    if (members.every(({ isKept }) => isKept) || !members.some(({ isKept }) => isKept)) return [];
    const list = members.map(({ operation, isKept }) => `${operation.resource} ${isKept ? "stored" : "not stored"}`).join(", ");
    return [{ promise: "G3", at: members[0]?.operation.sentAt ?? 0, what: `half a transaction ${group}: ${list}` }];
  });
}

interface Version {
  readonly rev: number;
  readonly document: Document | null;
}

/**
 * No update is lost: every stored write was made from exactly what was stored before it, the
 * revisions have no gaps, the last document is what all of them together make, and every read
 * showed a stored revision.
 */
function lostUpdates(resource: StoredWrites, { finals }: History): Violation[] {
  const { name } = resource;
  const versions: Version[] = [{ rev: 0, document: null }];
  const found = [...brokenChain(resource, versions), ...wrongReads(resource, versions)];
  const final = finals.find(({ resource: of }) => of === name);
  const last = versions.at(-1);
  if (final !== undefined && (final.rev !== last?.rev || !isSame(final.document, last.document))) {
    const what = `${name} is ${JSON.stringify(final)} at the end, and its history makes ${JSON.stringify(last)}`;
    found.push({ promise: "G3", resource: name, what });
  }
  return found;
}

/** Fills in what each revision was. */
function brokenChain({ kept }: StoredWrites, versions: Version[]): Violation[] {
  return kept.flatMap(({ entry, operation }): Violation[] => {
    const before = versions.at(-1) as Version;
    const { on } = operation;
    // What the writer had read: the document before, unless an update was lost.
    const read = on === undefined ? before : versions[on.rev];
    versions.push({ rev: entry.rev, document: entry.op === "delete" ? null : successor(read?.document ?? null, operation.id) });
    if (entry.rev !== before.rev + 1) return [wrong("G3", operation, `is revision ${entry.rev}, which follows ${before.rev}`)];
    if (on === undefined || on.rev === before.rev) return [];
    const lost = before.rev - on.rev;
    const howMany = lost === 1 ? "1 update is" : `${lost} updates are`;
    return [
      { ...wrong("G3", operation, `was made from revision ${on.rev} and stored over ${before.rev}: ${howMany} lost`), lostUpdates: lost },
    ];
  });
}

function wrongReads({ operations, keptById }: StoredWrites, versions: readonly Version[]): Violation[] {
  return operations.flatMap((operation) => {
    const { kind, outcome, rev, document } = operation;
    if ((kind !== "get" && kind !== "seal") || outcome !== "done" || rev === undefined || document === undefined) return [];
    if (isSame(versions[rev]?.document ?? null, document) || isFleeting(operation, keptById)) return [];
    return wrong("G3", operation, `showed ${JSON.stringify(document)} as revision ${rev}, which is ${JSON.stringify(versions[rev])}`);
  });
}

/** A plain read may show a write that a failover undid. A seal may not: it is a write itself. */
export function isFleeting({ kind, document }: Operation, keptById: StoredWrites["keptById"]): boolean {
  return kind === "get" && document != null && !keptById.has(document.by);
}

function isSame(a: Document | null, b: Document | null): boolean {
  return a?.n === b?.n && a?.by === b?.by && a?.chain === b?.chain;
}

/** G2: what is no token changes nothing. G4: a token that the lock never issued moves no fence. */
function acceptedIntruders({ operations, leases, entries, finals, strangeFences }: History): Violation[] {
  const accepted = operations
    .filter(({ outcome, kind }) => outcome === "done" && (kind === "forged" || kind === "malformed"))
    .map((operation) => wrong(operation.kind === "forged" ? "G4" : "G2", operation, "was accepted"));
  const issued = new Set(leases.map(({ resource, token }) => `${resource} ${token}`));
  const stored = [
    ...entries.map(({ resource, rev, token }) => ({ resource, token, where: `revision ${rev} has token` })),
    ...[...finals, ...strangeFences].map(({ resource, token }) => ({ resource, token, where: "the fence is" })),
  ].filter(({ resource, token }) => token !== undefined && !issued.has(`${resource} ${token}`));
  const strange = stored.map(({ resource, token, where }): Violation => {
    return { promise: "G4", resource, what: `${resource}: ${where} ${token}, which no holder was ever given` };
  });
  return [...accepted, ...strange];
}
