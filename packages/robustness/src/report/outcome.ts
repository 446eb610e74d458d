// What a run under faults leaves for its report.
import type { InjectedFault } from "../faults/fault-log.js";
import type { History } from "../history/history.js";
import type { LeaseRecord, Span, Violation } from "../history/records.js";
import type { LedgerRow } from "./ledger.js";

export interface Outcome {
  readonly servers: string;
  /** The time in which there were faults. */
  readonly span: Span;
  readonly history: History;
  /** The leases of the lockers in ambush. */
  readonly ambushed: readonly LeaseRecord[];
  readonly violations: readonly Violation[];
  readonly injected: readonly InjectedFault[];
  readonly leftOut: Readonly<Record<string, number>>;
  /** How often clients stopped themselves. */
  readonly pauses: number;
  /** How often each trap was sprung. */
  readonly traps: Readonly<Record<string, number>>;
  /** What became of the writes during faults that are accounted for one by one. */
  readonly ledger: readonly LedgerRow[];
  /** What is no violation and yet worth a look. */
  readonly remarks: readonly string[];
}
