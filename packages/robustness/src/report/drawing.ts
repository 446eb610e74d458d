// What the pictures of all runs are drawn with: a document, scales, axes, bars, labels, a legend.
import type { Span } from "../history/records.js";
import { style } from "./style.js";

export const WIDTH = 1280;
export const MARGIN = 28;
/** Where the rows of a timeline begin, after their names. */
export const LEFT = 178;

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}

/** One decimal, and none if it is zero. */
export function short(value: number): string {
  return String(Math.round(value * 10) / 10);
}

export function label(kind: string, x: number, y: number): (text: string) => string {
  return (text) => `<text class="${kind}" x="${short(x)}" y="${short(y)}">${escaped(text)}</text>`;
}

/** A picture that needs no other file, under its headline and remarks. */
export function svgDocument(height: number, headline: string, parts: readonly string[]): string {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-labelledby="what">`,
    style,
    `<rect class="surface" width="${WIDTH}" height="${height}"/>`,
    `<text class="headline" id="what" x="${MARGIN}" y="38">${escaped(headline)}</text>`,
    ...parts,
    "</svg>\n",
  ].join("\n");
}

export interface TimeScale extends Span {
  (at: number): number;
  readonly x: number;
  readonly width: number;
}

/** Instants to places; what lies outside of the span is put at its edge. */
export function timeScale({ fromAt, untilAt }: Span, { x, width }: Pick<Box, "x" | "width">): TimeScale {
  const place = (at: number): number => {
    const share = (Math.min(Math.max(at, fromAt), untilAt) - fromAt) / Math.max(1, untilAt - fromAt);
    return x + share * width;
  };
  return Object.assign(place, { fromAt, untilAt, x, width });
}

export interface Bar extends Span {
  readonly y: number;
  readonly height: number;
  readonly kind: string;
  readonly title: string;
}

/** At least visible. */
export function bar(scale: TimeScale, { fromAt, untilAt, y, height, kind, title }: Bar): string {
  const x = scale(fromAt);
  const width = Math.max(1.5, scale(untilAt) - x);
  return `<rect class="${kind}" x="${short(x)}" y="${short(y)}" width="${short(width)}" height="${short(height)}" rx="1.5"><title>${escaped(title)}</title></rect>`;
}

/** Vertical lines at round moments, with the time since `zeroAt` below. */
export function timeAxis(scale: TimeScale, { y, height, zeroAt }: { y: number; height: number; zeroAt: number }): string {
  const spanMs = scale.untilAt - scale.fromAt;
  const steps = [50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 60_000, 120_000, 300_000, 600_000];
  const stepMs = steps.find((step) => spanMs / step <= 12) ?? 1_200_000;
  const lines: string[] = [];
  for (let ms = Math.ceil((scale.fromAt - zeroAt) / stepMs) * stepMs; ms <= scale.untilAt - zeroAt; ms += stepMs) {
    const x = scale(zeroAt + ms);
    const name = stepMs < 1_000 ? `${(ms / 1_000).toFixed(stepMs < 100 ? 2 : 1)} s` : `${ms / 1_000} s`;
    lines.push(`<path class="hair" d="M${short(x)} ${y}v${height}"/>`, label("middle", x, y + height + 14)(name));
  }
  return lines.join("");
}

/** The fewest round steps from zero that reach the highest value; 2 to 4 of them. The last is the top of the axis. */
export function roundTicks(highest: number): readonly number[] {
  if (!(highest > 0)) return [0, 1];
  const decade = 10 ** Math.floor(Math.log10(highest / 4));
  const step = [1, 2, 2.5, 5, 10, 20, 25, 50].map((factor) => factor * decade).find((size) => size * 4 >= highest) ?? highest;
  const count = Math.max(1, Math.ceil(highest / step - 1e-9));
  return Array.from({ length: count + 1 }, (_, i) => Number((i * step).toPrecision(12)));
}

/** A coloured mark and its word for each, in one row. */
export function legend(entries: readonly (readonly [kind: string, name: string])[], x: number, y: number): string {
  let left = x;
  return entries
    .map(([kind, name]) => {
      const entry = `<rect class="${kind}" x="${short(left)}" y="${y - 9}" width="11" height="11" rx="2"/>${label("", left + 16, y)(name)}`;
      left += 34 + name.length * 6;
      return entry;
    })
    .join("");
}
