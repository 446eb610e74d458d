// The one way in which things are compared: every contestant runs one round, in an order that
// changes with each round, so that the noise of the machine falls on all alike. Figures are medians
// over the rounds; ratios are taken within a round.
import { countProcessorTime, type Processes, type Role } from "./cpu.js";
import { type Column, type Kind, median, quantile, type Result, type Row, ratio, sum } from "./results.js";

export interface Round {
  readonly operations: number;
  /** With those that ended after the time: what the processor time was taken for. */
  readonly allOperations?: number;
  readonly seconds: number;
  readonly latenciesUs: readonly number[];
  /** More figures of this round. */
  readonly figures?: Readonly<Record<string, number>>;
}

export interface Contestant {
  readonly name: string;
  readonly kind: Kind;
  readonly does: string;
  readonly processes: Processes;
  round(seconds: number): Promise<Round>;
  /** Once after the rounds: what can only be seen at a price in speed. */
  after?(): Promise<Readonly<Record<string, number>>>;
}

export interface Effort {
  readonly rounds: number;
  /** Of one round of one contestant. */
  readonly seconds: number;
}

export interface Plan {
  readonly id: string;
  readonly title: string;
  readonly remark: string;
  readonly effort: Effort;
  readonly contestants: readonly Contestant[];
  /** The column that is divided by that of the first contestant, or of the best peer. */
  readonly compared: "p50Us" | "perSecond";
  readonly reference?: "first" | "best peer";
  /** A round is enough where most of the time is spent waiting. */
  readonly warmUp?: "to speed" | "one round";
  /** After the usual columns. */
  readonly columns?: readonly Column[];
}

type Samples = Readonly<Record<string, number>>;

interface Score {
  readonly latenciesUs: number[];
  readonly rounds: Samples[];
}

const usual: readonly Column[] = [
  { key: "perSecond", title: "per s", digits: 0 },
  { key: "p50Us", title: "p50 µs", digits: 0 },
  { key: "p99Us", title: "p99 µs", digits: 0 },
];
const processorTitles: Readonly<Record<Role, string>> = {
  client: "client",
  redis: "redis",
  server: "server",
  postgres: "postgres",
  workers: "workers",
};

async function measured(contestant: Contestant, seconds: number): Promise<{ round: Round; samples: Samples }> {
  const used = countProcessorTime(contestant.processes);
  const round = await contestant.round(seconds);
  const { operations, allOperations = operations } = round;
  if (round.latenciesUs.length === 0) throw new Error(`${contestant.name} did nothing in ${seconds} s`);
  const processor = Object.entries(used()).map(([role, us]) => [`${role}Us`, us / Math.max(1, allOperations)]);
  return {
    round,
    samples: {
      perSecond: operations / round.seconds,
      p50Us: median(round.latenciesUs),
      ...Object.fromEntries(processor),
      ...round.figures,
    },
  };
}

/** `step` hears what runs now. */
export async function compare(plan: Plan, step: (text: string) => void): Promise<Result> {
  const { contestants, effort } = plan;
  const scores = new Map<Contestant, Score>(contestants.map((contestant) => [contestant, { latenciesUs: [], rounds: [] }]));
  step("warming up");
  for (const contestant of contestants) await warmUp(contestant, plan);
  for (let number = 0; number < effort.rounds; number += 1) {
    for (let place = 0; place < contestants.length; place += 1) {
      const contestant = contestants[(place + number) % contestants.length];
      const score = contestant && scores.get(contestant);
      if (contestant === undefined || score === undefined) continue;
      step(`round ${number + 1} of ${effort.rounds}, ${contestant.name}`);
      const { round, samples } = await measured(contestant, effort.seconds);
      score.rounds.push(samples);
      for (const latency of round.latenciesUs) score.latenciesUs.push(latency);
    }
  }
  const rows: Row[] = [];
  for (const [contestant, score] of scores) rows.push(await judged(contestant, score));
  return shownWith(plan, rows);
}

const WARM_OPERATIONS = 1_000;
const MOST_WARM_SECONDS = 2;
const MOST_WARM_ROUNDS = 10;

/** Not counted: code is compiled, connections and scripts are loaded. */
async function warmUp(contestant: Contestant, { effort, warmUp: how = "to speed" }: Plan): Promise<void> {
  const until = performance.now() + Math.min(MOST_WARM_SECONDS, MOST_WARM_ROUNDS * effort.seconds) * 1_000;
  let done = 0;
  do done += (await contestant.round(effort.seconds)).operations;
  while (how === "to speed" && done < WARM_OPERATIONS && performance.now() < until);
}

async function judged(contestant: Contestant, { latenciesUs, rounds }: Score): Promise<Row> {
  const { name, kind, does } = contestant;
  const keys = Object.keys(rounds[0] ?? {});
  const byRound = Object.fromEntries(keys.map((key) => [key, rounds.map((samples) => rounded(samples[key] ?? Number.NaN))]));
  const medians = Object.fromEntries(keys.map((key) => [key, median(byRound[key] ?? [])]));
  const p99Us = rounded(quantile(latenciesUs, 0.99));
  const more = await contestant.after?.();
  return { name, kind, does, figures: { ...medians, p99Us, ...more }, rounds: byRound };
}

function shownWith(plan: Plan, rows: readonly Row[]): Result {
  const { id, title, remark, compared, columns = [], effort, reference = "first" } = plan;
  const base = reference === "first" ? rows[0] : bestPeer(rows, compared);
  const of = reference === "first" ? (base?.name.split(/[:,] /)[0] ?? "") : reference;
  const roles = Object.keys(processorTitles).filter((role) => rows.some(({ figures }) => `${role}Us` in figures)) as Role[];
  const withRatio = rows.map((row) => ({
    ...row,
    figures: { ...row.figures, ratio: rounded(ratio(row.rounds[compared] ?? [], base?.rounds[compared] ?? [])) },
  }));
  return {
    id,
    title,
    compared,
    remark: `${remark}; ${effort.rounds} rounds of ${effort.seconds} s in turns`,
    columns: [
      ...usual,
      { key: "ratio", title: `${compared === "p50Us" ? "p50" : "rate"} × ${of}`, digits: 2 },
      ...columns,
      ...roles.map((role) => ({ key: `${role}Us`, title: `CPU ${processorTitles[role]} µs`, digits: 1 })),
    ],
    rows: withRatio,
  };
}

/** The fastest of those that are no bounds and not ours. */
export function bestPeer(rows: readonly Row[], key: string): Row | undefined {
  const sign = key === "perSecond" ? -1 : 1;
  const others = rows.filter(({ kind, figures }) => kind === "peer" && figures[key] !== undefined);
  return others.sort((a, b) => sign * ((a.figures[key] ?? 0) - (b.figures[key] ?? 0)))[0];
}

/** Five significant digits: more is noise, and makes the file of the results long. */
function rounded(value: number): number {
  return Number(value.toPrecision(5));
}

/** All rounds of several processes that worked side by side, as one. */
export function together(rounds: readonly Round[]): Round {
  return {
    operations: sum(rounds.map(({ operations }) => operations)),
    seconds: Math.max(...rounds.map(({ seconds }) => seconds)),
    latenciesUs: rounds.flatMap(({ latenciesUs }) => latenciesUs),
  };
}
