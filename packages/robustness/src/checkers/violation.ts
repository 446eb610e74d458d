// What a checker found to be wrong.

export interface Violation {
  readonly promise: "T1" | "T2" | "L1" | "L2" | "G1" | "G2" | "G3" | "G4" | "order" | "counters" | "end";
  readonly what: string;
  /** When it showed, where that is known. */
  readonly at?: number;
  readonly resource?: string;
  /** How many updates are lost by it. */
  readonly lostUpdates?: number;
}
