// What can happen in a story, as plain data: the terminal, the JSON lines and the picture are all made from these and from nothing else.
// Their shape is public: `--json` prints them as they stand here.

/** How a step is shown; `from` and `to` are actors, that is lanes. */
export type StepKind =
  /** A question under way. */
  | "asks"
  /** An answer that says yes, and one that says no. */
  | "answers"
  | "refuses"
  /** A lease begins at `from`, and ends, as far as clocks are concerned. */
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
  /** Since the act began. */
  readonly atMs: number;
  readonly kind: StepKind;
  readonly from: string;
  readonly to?: string;
  readonly text: string;
  readonly token?: number;
}

/** Something the story claims, looked at when it was told. */
export interface Check {
  readonly event: "check";
  readonly scenario: string;
  readonly act: string;
  readonly atMs: number;
  readonly ok: boolean;
  readonly claim: string;
  /** What was seen instead, when it was not so. */
  readonly saw?: string;
}

export interface ScenarioBegins {
  readonly event: "scenario";
  readonly scenario: string;
  readonly about: string;
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
  /** What the run has shown; what went differently, when it did not. */
  readonly proven: string;
}

export type StoryEvent = ScenarioBegins | ActBegins | Step | Check | ScenarioEnds;

/** Whoever looks on. Must not throw, and must not slow the story down. */
export interface Audience {
  notice(event: StoryEvent): void;
}
