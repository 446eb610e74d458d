// Marks: numbers under names of the caller's choice, which only rise. Stored on a quorum, like
// tokens.
import type { Asked, Fleet } from "../protocol/fleet.js";
import type { LeaseContext } from "./context.js";
import { checkHere } from "./elsewhere.js";
import { answersOf } from "./list-held.js";

interface MarkQuestion {
  readonly name: string;
  /** 0 only reads. */
  readonly atLeast: number;
  /** Whichever fleet the mark belongs to. */
  readonly isAnywhere?: true;
}

/** The admission of one member changes every epoch once. */
const MAX_TRIES = 4;

const answersIn = <Answer>(asked: readonly Asked<Answer>[]): number => asked.filter(({ kind }) => kind === "answered").length;

/** The highest that a quorum knows. */
export async function raiseMark(context: LeaseContext, fleet: Pick<Fleet, "mark">, question: MarkQuestion): Promise<number> {
  const { name, atLeast, isAnywhere } = question;
  for (let tries = 1; ; tries++) {
    if (isAnywhere === undefined) checkHere(context, [name]);
    const asked = await fleet.mark(name, atLeast);
    if (tries < MAX_TRIES && answersIn(asked) < context.policy.quorum) continue;
    return Math.max(...answersOf(context, `the mark ${name}`, asked));
  }
}
