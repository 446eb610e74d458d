// What can happen in a run of the demo, as plain data: the terminal, the JSON lines and the picture
// are all made from these. Their shape is public: `--json` prints them as they stand here.

/** How a step is shown; `from` and `to` are lanes: workers, or the servers that they ask. */
type StepKind =
  /** A question is sent. */
  | "asks"
  /** An answer that says yes, and one that says no. */
  | "answers"
  | "refuses"
  /** A write was stored over an update that its writer never saw. */
  | "overwrites"
  /** A lease begins at `from`, and ends by the clock. */
  | "holds"
  | "over"
  /** A process or a server stands still, and goes on. */
  | "stops"
  | "resumes"
  /** Something is broken on purpose. */
  | "breaks"
  | "remarks";

export interface Step {
  readonly event: "step";
  readonly scenario: string;
  readonly act: string;
  /** Since the first step of the act. */
  readonly atMs: number;
  readonly kind: StepKind;
  readonly from: string;
  readonly to?: string;
  readonly text: string;
  readonly token?: number;
}

/** A claim of the scenario, and whether it came true. */
export interface Check {
  readonly event: "check";
  readonly scenario: string;
  readonly act: string;
  readonly atMs: number;
  readonly ok: boolean;
  readonly claim: string;
  /** The claim is the damage that a control must show. */
  readonly damage?: boolean;
  /** What was seen instead, when the claim did not come true. */
  readonly saw?: string;
}

export interface ScenarioBegins {
  readonly event: "scenario";
  readonly scenario: string;
  readonly about: string;
  /** What it is to show, a sentence for the fence or the lock and one for the control; its end says whether it did. */
  readonly claim: string;
  readonly ttlMs: number;
}

export interface ActBegins {
  readonly event: "act";
  readonly scenario: string;
  readonly act: string;
  /** The lanes, from left to right. */
  readonly actors: readonly string[];
}

export interface ScenarioEnds {
  readonly event: "end";
  readonly scenario: string;
  readonly ok: boolean;
  readonly elapsedMs: number;
  /** What the run has shown; when it failed, what was different. */
  readonly proven: string;
}

export type DemoEvent = ScenarioBegins | ActBegins | Step | Check | ScenarioEnds;

/** A terminal, a file, a page. It neither throws nor waits. */
export type Show = (event: DemoEvent) => void;

/** Each in a line of its own. */
export function sentencesOf(text: string): readonly string[] {
  return text.split(/(?<=\.) (?=[A-Z])/);
}

/** All other lanes are workers. */
export const serverLanes: readonly string[] = ["lock", "gateway", "store"];
