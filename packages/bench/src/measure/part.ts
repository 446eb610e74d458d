// A part of the benchmark: what can be asked for by name, and what it needs to run.
import type { Effort, Plan } from "./comparison.js";
import type { Result } from "./results.js";

/** quick: the headlines in a minute. usual: what the page shows. all: also what takes long. */
export type Scope = "quick" | "usual" | "all";

export interface Context {
  readonly scope: Scope;
  readonly progress: Progress;
  /** Another built checkout of this project, whose lock and gateway take part as well. */
  readonly beside: string | undefined;
  /** The effort of the usual scope, made fit for this run. */
  effort(usual: Effort): Effort;
  /** How many of what is not repeated; fewer in a run that only tries the benchmark out. */
  count(usual: number): number;
  publish(result: Result): void;
  /** Publishes what comes of it. */
  compare(plan: Plan): Promise<void>;
  /** The version of a server that was started. */
  note(server: string, version: string): void;
  /** Ends with the run. */
  use<Opened extends AsyncDisposable>(opened: Opened): Opened;
}

export interface Part {
  readonly name: string;
  readonly what: string;
  /** The smallest scope that has it; "named" is for what only runs when it is asked for by name. */
  readonly from: Scope | "named";
  run(context: Context): Promise<void>;
}

const sizes: Readonly<Record<Scope | "named", number>> = { quick: 0, usual: 1, all: 2, named: 3 };

export function isWithin(scope: Scope, from: Part["from"]): boolean {
  return sizes[from] <= sizes[scope];
}

/** What the command line asks for in place of the usual. */
interface Wanted {
  readonly rounds: number | undefined;
  readonly seconds: number | undefined;
}

/** Shorter rounds than this measure nothing: such a run tries the benchmark out. */
const TRY_OUT_SECONDS = 0.1;

export function countFor(asked: Wanted): (usual: number) => number {
  return (usual) => ((asked.seconds ?? 1) < TRY_OUT_SECONDS ? Math.ceil(usual / 100) : usual);
}

/** Rounds and seconds that were asked for win over those of the scope. */
export function effortFor(scope: Scope, asked: Wanted): (usual: Effort) => Effort {
  return (usual) => {
    const scaled = { quick: { rounds: 3, seconds: usual.seconds * 0.3 }, usual, all: { ...usual, rounds: Math.ceil(usual.rounds * 1.5) } };
    return { rounds: asked.rounds ?? scaled[scope].rounds, seconds: asked.seconds ?? Number(scaled[scope].seconds.toPrecision(2)) };
  };
}

export interface Progress {
  /** A row begins. */
  begin(title: string): void;
  /** What of the row runs now. */
  step(text: string): void;
  /** Nothing runs; what is printed next stands in a line of its own. */
  end(): void;
}

export function progressOn(stream: NodeJS.WriteStream): Progress {
  let current = "";
  const overwrite = (text: string): void => {
    stream.write(`\r\x1b[2K${text.slice(0, Math.max(20, (stream.columns ?? 80) - 1))}`);
  };
  return {
    begin(title) {
      current = title;
      if (stream.isTTY) overwrite(title);
      else stream.write(`${title} …\n`);
    },
    step(text) {
      if (stream.isTTY) overwrite(`${current}: ${text}`);
    },
    end() {
      if (stream.isTTY) overwrite("");
    },
  };
}
