// Text and shapes for the page of a run: escaping, and a scale from instants to places. Pure; knows nothing of runs.
import type { Span } from "../../../history/lease-record.js";

export function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}

export const WIDTH = 1_160;
export const LEFT = 150;
const RIGHT = 12;

export interface Scale extends Span {
  (at: number): number;
}

/** Instants to the x of a picture; what lies outside of the span is put at its edge. */
export function scaleOf({ fromAt, untilAt }: Span): Scale {
  const place = (at: number): number => {
    const share = (Math.min(Math.max(at, fromAt), untilAt) - fromAt) / Math.max(1, untilAt - fromAt);
    return LEFT + share * (WIDTH - LEFT - RIGHT);
  };
  return Object.assign(place, { fromAt, untilAt });
}

export interface Bar extends Span {
  readonly y: number;
  readonly height: number;
  readonly kind: string;
  readonly title: string;
}

/** At least visible. */
export function bar(scale: Scale, { fromAt, untilAt, y, height, kind, title }: Bar): string {
  const x = scale(fromAt);
  const width = Math.max(1.5, scale(untilAt) - x);
  return `<rect class="${kind}" x="${x.toFixed(1)}" y="${y}" width="${width.toFixed(1)}" height="${height}" rx="1.5"><title>${escaped(title)}</title></rect>`;
}

export function label(text: string, y: number): string {
  return `<text class="label" x="${LEFT - 10}" y="${y}" text-anchor="end">${escaped(text)}</text>`;
}

export interface Axis {
  readonly y: number;
  readonly height: number;
  /** Instants are told as the time since then. */
  readonly zeroAt: number;
}

/** Vertical lines at round moments, with their names below. */
export function axis(scale: Scale, { y, height, zeroAt }: Axis): string {
  const spanMs = scale.untilAt - scale.fromAt;
  const steps = [50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 60_000, 120_000, 300_000, 600_000];
  const stepMs = steps.find((step) => spanMs / step <= 12) ?? 1_200_000;
  const lines: string[] = [];
  for (let ms = Math.ceil((scale.fromAt - zeroAt) / stepMs) * stepMs; ms <= scale.untilAt - zeroAt; ms += stepMs) {
    const x = scale(zeroAt + ms).toFixed(1);
    const name = stepMs < 1_000 ? `${(ms / 1_000).toFixed(stepMs < 100 ? 2 : 1)} s` : `${ms / 1_000} s`;
    lines.push(`<line class="grid" x1="${x}" x2="${x}" y1="${y}" y2="${y + height}"/>`);
    lines.push(`<text class="tick" x="${x}" y="${y + height + 14}" text-anchor="middle">${name}</text>`);
  }
  return lines.join("");
}

export function picture(height: number, name: string, shapes: readonly string[]): string {
  return `<svg viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${escaped(name)}">${shapes.join("\n")}</svg>`;
}
