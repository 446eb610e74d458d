// Every curve of every panel judged; a panel is as bad as its worst curve. A curve with too few
// values is not flat. A curve that this machine cannot measure is no finding, nor is one that is
// only shown because another says the same exactly.
import type { Point, Samples } from "../history/samples.js";
import { judge, judgedFromMs, type RunSpan, type Verdict } from "./growth.js";
import { type Panel, panels } from "./panels.js";

/** Parts of the judged span, in each of which there must be a new value. */
const PARTS_WITH_NEWS = 8;

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

export function findAll(samples: Pick<Samples, "curvesOf" | "lastMs">): readonly Finding[] {
  const span = { fromMs: 0, untilMs: samples.lastMs };
  return panels.map((panel) => {
    const exact = panel.exactly === undefined ? undefined : samples.curvesOf(panel.exactly);
    const curves = [...samples.curvesOf(panel.id)].map(([name, points]) => {
      const verdict = judge(points, panel.rule, span);
      return { name, points, verdict: saysEnough(exact?.get(name), span) ? { ...verdict, kind: "not judged" as const } : verdict };
    });
    const [worst] = [...curves].sort((a, b) => badness(b, panel) - badness(a, panel));
    return { panel, curves, worst };
  });
}

export function isBad({ verdict }: Curve): boolean {
  return verdict.kind !== "flat" && verdict.kind !== "not judged";
}

/** Or not judged. */
export function isFlat({ curves }: Finding): boolean {
  return !curves.some(isBad);
}

export function isJudged({ curves }: Finding): boolean {
  return curves.some(({ verdict }) => verdict.kind !== "not judged");
}

/**
 * Whether client 1 grows, and surely faster than its peers: in a run too short to be judged, all of
 * them still warm up.
 */
export function standsOut({ curves }: Finding): boolean {
  const leaking = curves.find(({ name }) => name === "client 1");
  if (leaking?.verdict.kind !== "rising") return false;
  return curves.every((curve) => curve === leaking || curve.verdict.mostPerHour < leaking.verdict.leastPerHour);
}

/**
 * A value stands until there is a new one, so a process that hardly collects says little: new
 * values are needed all along.
 */
function saysEnough(points: readonly Point[] | undefined, span: RunSpan): boolean {
  const fromMs = judgedFromMs(span);
  const widthMs = (span.untilMs - fromMs) / PARTS_WITH_NEWS;
  const withNews = new Set<number>();
  (points ?? []).forEach(({ atMs, value }, i, all) => {
    if (atMs >= fromMs && i > 0 && value !== all[i - 1]?.value)
      withNews.add(Math.min(PARTS_WITH_NEWS - 1, Math.floor((atMs - fromMs) / widthMs)));
  });
  return withNews.size === PARTS_WITH_NEWS;
}

function badness(curve: Curve, { rule }: Panel): number {
  const { verdict } = curve;
  const slope = Number.isNaN(verdict.perHour) ? 0 : verdict.perHour * (rule.bad === "rising" ? 1 : -1);
  return slope + (isBad(curve) ? 1e12 : 0);
}
