// Every curve of every panel judged, and the panel with it: as bad as its worst curve. A curve that the rule could not judge is not flat either, but one that this
// machine cannot measure at all is no finding. Pure.
import type { Chronicle } from "./chronicle.js";
import { judge, type Verdict } from "./judge/judge.js";
import type { Point } from "./judge/trend.js";
import { type Panel, panels } from "./panels.js";

export interface Curve {
  readonly name: string;
  readonly points: readonly Point[];
  readonly verdict: Verdict;
}

export interface Finding {
  readonly panel: Panel;
  readonly curves: readonly Curve[];
  /** The one with the steepest bad slope, those that are not flat before those that are. */
  readonly worst: Curve | undefined;
}

export function findAll(chronicle: Pick<Chronicle, "curvesOf" | "lastMs">): readonly Finding[] {
  const span = { fromMs: 0, untilMs: chronicle.lastMs };
  return panels.map((panel) => {
    const curves = [...chronicle.curvesOf(panel.id)].map(([name, points]) => ({ name, points, verdict: judge(points, panel.rule, span) }));
    const [worst] = [...curves].sort((a, b) => badness(b, panel) - badness(a, panel));
    return { panel, curves, worst };
  });
}

export function isFlat({ curves }: Finding): boolean {
  return curves.every(({ verdict }) => verdict.kind === "flat");
}

/** Whether client 1 grows, and surely faster than its peers: in a run too short to be judged, all of them still warm up. */
export function standsOut({ curves }: Finding): boolean {
  const leaking = curves.find(({ name }) => name === "client 1");
  if (leaking?.verdict.kind !== "rising") return false;
  return curves.every((curve) => curve === leaking || curve.verdict.mostPerHour < leaking.verdict.leastPerHour);
}

function badness({ verdict }: Curve, { rule }: Panel): number {
  const slope = Number.isNaN(verdict.perHour) ? 0 : verdict.perHour * (rule.bad === "rising" ? 1 : -1);
  return slope + (verdict.kind === "flat" ? 0 : 1e12);
}
