// Judges what clients were told against what the store kept.

/**
 * One write as its client saw it. `seq` is unique among all writes of a run, so it names the write.
 */
export interface Told {
  readonly resource: string;
  readonly token: number;
  readonly seq: number;
  readonly answer:
    | { readonly kind: "accepted"; readonly rev: number }
    | { readonly kind: "refused"; readonly code: string }
    | { readonly kind: "unknown" };
}

/** One write as the store kept it. */
export interface Kept {
  readonly resource: string;
  readonly rev: number;
  readonly token: number;
  readonly seq: number;
}

/** Every broken promise, in words; empty when all were kept. */
export function violations(told: readonly Told[], kept: readonly Kept[]): readonly string[] {
  return [...orderViolations(kept), ...answerViolations(told, kept)];
}

function orderViolations(kept: readonly Kept[]): string[] {
  const found: string[] = [];
  for (const [resource, entries] of groupBy(kept, ({ resource }) => resource)) {
    const inOrder = entries.toSorted((a, b) => a.rev - b.rev);
    for (const [index, entry] of inOrder.entries()) {
      const before = inOrder[index - 1];
      if (entry.rev !== index + 1) found.push(`G3 ${resource}: revision ${index + 1} is missing, ${entry.rev} is there`);
      if (before !== undefined && entry.token < before.token)
        found.push(`G1 ${resource}: revision ${entry.rev} has token ${entry.token} after ${before.token}`);
    }
  }
  return found;
}

function answerViolations(told: readonly Told[], kept: readonly Kept[]): string[] {
  const found: string[] = [];
  const bySeq = groupBy(kept, ({ seq }) => seq);
  const known = new Set(told.map(({ seq }) => seq));
  for (const { seq, resource } of kept) if (!known.has(seq)) found.push(`G3 ${resource}: write ${seq} is stored and nobody sent it`);
  for (const { seq, resource, token, answer } of told) {
    const stored = bySeq.get(seq) ?? [];
    const what = `${resource}: write ${seq} with token ${token}`;
    if (stored.length > 1) found.push(`G3 ${what} is stored ${stored.length} times`);
    if (answer.kind === "accepted" && stored[0]?.rev !== answer.rev)
      found.push(`G3 ${what} was accepted as revision ${answer.rev} and is ${stored[0]?.rev ?? "nowhere"}`);
    if (answer.kind === "refused" && stored.length > 0) found.push(`G3 ${what} was refused (${answer.code}) and is stored`);
    if (stored.some((entry) => entry.token !== token || entry.resource !== resource)) found.push(`G3 ${what} is stored as something else`);
  }
  return found;
}

function groupBy<T, K>(items: readonly T[], keyOf: (item: T) => K): ReadonlyMap<K, readonly T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group === undefined) groups.set(keyOf(item), [item]);
    else group.push(item);
  }
  return groups;
}
