// Whether a concurrent history is equivalent to a sequence in which each operation takes effect at
// one moment between its beginning and its end, as the model allows: the search of Wing and Gong
// with Lowe's memory of what was tried.

export interface Interval {
  readonly fromAt: number;
  /** Infinity for what was never answered and yet took effect. */
  readonly untilAt: number;
}

export interface Model<State, Operation> {
  readonly initial: State;
  /** The state after it; undefined if it cannot have happened in this one. */
  readonly step: (state: State, operation: Operation) => { readonly state: State } | undefined;
  /** Equal for equal states. */
  readonly key: (state: State) => string;
}

export type Judgement<Operation> =
  | { readonly linearizable: true }
  /** `stuck`: after the longest sequence that was found, none of these can come next. */
  | { readonly linearizable: false; readonly stuck: readonly Operation[]; readonly told: number };

/** All before `next` have happened, and the ones in `ahead`, which is sorted. */
interface Point<State> {
  readonly next: number;
  readonly ahead: readonly number[];
  readonly state: State;
}

export function linearizability<State, Operation extends Interval>(
  operations: readonly Operation[],
  model: Model<State, Operation>,
): Judgement<Operation> {
  const ordered = [...operations].sort((a, b) => a.fromAt - b.fromAt);
  const tried = new Set<string>();
  const stack: Point<State>[] = [{ next: 0, ahead: [], state: model.initial }];
  let best: { readonly told: number; readonly stuck: readonly Operation[] } = { told: -1, stuck: [] };
  for (let point = stack.pop(); point !== undefined; point = stack.pop()) {
    if (point.next === ordered.length) return { linearizable: true };
    const candidates = candidatesAt(ordered, point);
    const told = point.next + point.ahead.length;
    if (told > best.told) best = { told, stuck: candidates.map((index) => ordered[index] as Operation) };
    // The one that ends first is tried first, so it is pushed last.
    candidates.sort((a, b) => (ordered[b]?.untilAt ?? 0) - (ordered[a]?.untilAt ?? 0));
    for (const index of candidates) {
      const stepped = model.step(point.state, ordered[index] as Operation);
      if (stepped === undefined) continue;
      const after = advanced(point, index, stepped.state);
      const key = `${after.next}/${after.ahead.join()}/${model.key(after.state)}`;
      if (tried.has(key)) continue;
      tried.add(key);
      stack.push(after);
    }
  }
  return { linearizable: false, ...best };
}

/** Those that may come next: none of the others had ended before they began. */
function candidatesAt<State>(ordered: readonly Interval[], { next, ahead }: Point<State>): number[] {
  const candidates: number[] = [];
  let firstEndAt = Number.POSITIVE_INFINITY;
  for (let index = next; index < ordered.length; index++) {
    const { fromAt, untilAt } = ordered[index] as Interval;
    if (fromAt > firstEndAt) break;
    if (ahead.includes(index)) continue;
    candidates.push(index);
    firstEndAt = Math.min(firstEndAt, untilAt);
  }
  return candidates.filter((index) => (ordered[index] as Interval).fromAt <= firstEndAt);
}

function advanced<State>({ next, ahead }: Point<State>, index: number, state: State): Point<State> {
  if (index !== next) return { next, ahead: [...ahead, index].sort((a, b) => a - b), state };
  let after = next + 1;
  let skipped = 0;
  while (ahead[skipped] === after) {
    after++;
    skipped++;
  }
  return { next: after, ahead: ahead.slice(skipped), state };
}
