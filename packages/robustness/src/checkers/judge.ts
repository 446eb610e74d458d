// Every promise, held against the history of a run of the whole system.

import type { Span, Violation } from "../history/lease-record.js";
import { groupedBy, type SystemHistory } from "../profiles/system/history.js";
import { unbelievableAnswers } from "./answers.js";
import { brokenFences } from "./fence.js";
import { overlaps, repeatedTokens, tokensAgainstTime, toldTooLate } from "./leases.js";
import { unlinearizable } from "./register.js";
import { settled } from "./settled.js";
import { strangers } from "./strangers.js";
import { lostUpdates } from "./updates.js";

/** `leaps`: when clocks of nodes were set forward, which L2 assumes away. */
export function judge(history: SystemHistory, leaps: readonly Span[]): Violation[] {
  const resources = settled(history);
  return [
    ...[...groupedBy(history.tenures, ({ resource }) => resource)].flatMap(([resource, tenures]) =>
      [...repeatedTokens(tenures), ...tokensAgainstTime(tenures), ...overlaps(tenures, leaps), ...toldTooLate(tenures, history.stalls)].map(
        (violation): Violation => ({ ...violation, resource, what: `${resource}: ${violation.what}` }),
      ),
    ),
    ...brokenFences(resources, history.tenures),
    ...unbelievableAnswers(resources),
    ...lostUpdates(resources, history.finals),
    ...unlinearizable(resources),
    ...strangers(history),
  ];
}
