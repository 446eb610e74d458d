// What the pictures of all runs are drawn with: a document that needs no other file, for light and
// dark; bars and curves over time; text. And whole numbers as people read them.
import { svgDocument as drawn, escaped } from "@palisade/testkit";
import type { Span } from "../history.js";

export const WIDTH = 1280;
export const MARGIN = 28;

const light = { surface: "#fcfcfb", ink: "#1d1d1b", muted: "#6b6a64", hair: "#e4e2dc", shade: "#f3f2ee", bad: "#b3261e", good: "#2f8f5b" };
const dark = { surface: "#16181c", ink: "#e9e8e4", muted: "#9b9a94", hair: "#2e3137", shade: "#1c1f24", bad: "#ff8a80", good: "#4dbd83" };
/** Read well on both grounds. */
const hues = ["#4a8fd9", "#d9782d", "#3f9c68", "#a566bd", "#a08828", "#7f8fa9"];
export const HUES = hues.length;

const variables = (colours: object): string =>
  Object.entries(colours)
    .map(([name, value]) => `--${name}:${value}`)
    .join(";");
const style = `svg{${variables(light)};color-scheme:light dark}
@media(prefers-color-scheme:dark){svg{${variables(dark)}}}
text{font:11px system-ui,sans-serif;fill:var(--muted)}text.end{text-anchor:end}text.bad{fill:var(--bad);font-weight:700}
.headline{font-size:20px;font-weight:600;fill:var(--ink)}.title{font-size:12.5px;fill:var(--ink)}
.surface{fill:var(--surface)}.shade{fill:var(--shade)}.bad{fill:var(--bad)}.good{fill:var(--good)}
.hair,.curve,.trend{fill:none;stroke:var(--hair)}.curve{stroke-width:1.3}.trend{stroke:var(--ink);stroke-dasharray:4 3}
${hues.map((hue, i) => `.h${i}{stroke:${hue}}.k${i}{fill:${hue}}`).join("")}`;

/** One decimal, and none if it is zero. */
export function short(value: number): string {
  return String(Math.round(value * 10) / 10);
}

/** 12345.6 → "12 346". */
export function whole(value: number): string {
  return Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, " ");
}

export function label(kind: string, [x, y]: readonly [number, number], text: string): string {
  return `<text class="${kind}" x="${short(x)}" y="${short(y)}">${escaped(text)}</text>`;
}

export function svgDocument(height: number, headline: string, parts: readonly string[]): string {
  const picture = { width: WIDTH, height: Math.ceil(height), label: headline, style };
  return drawn(picture, [label("headline", [MARGIN, 38], headline), ...parts]);
}

/** In as many lines as it needs, broken between words; and where the next one begins. */
export function paragraph(kind: string, text: string, y: number): { readonly parts: readonly string[]; readonly y: number } {
  const lines = text.match(/\S.{0,188}(?=\s|$)|\S{190}/gs) ?? [];
  return { parts: lines.map((line, i) => label(kind, [MARGIN, y + i * 16], line)), y: y + lines.length * 16 };
}

export interface Plot extends Span {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  /** The value at its top; at its bottom is zero. */
  readonly top: number;
}

/** What lies outside of the span is put at its edge. */
export function xOf({ x, width, fromAt, untilAt }: Plot, at: number): number {
  return x + ((Math.min(Math.max(at, fromAt), untilAt) - fromAt) / Math.max(1, untilAt - fromAt)) * width;
}

export function yOf({ y, height, top }: Plot, value: number): number {
  return y + height * (1 - Math.min(1, Math.max(0, value) / top));
}

/** Of a class, with a title; at least visible. */
export function bar(plot: Plot, { fromAt, untilAt }: Span, [kind, title]: readonly [kind: string, title: string]): string {
  const x = xOf(plot, fromAt);
  const width = Math.max(1.5, xOf(plot, untilAt) - x);
  const box = `x="${short(x)}" y="${short(plot.y)}" width="${short(width)}" height="${short(plot.height)}"`;
  return `<rect class="${kind}" ${box}><title>${escaped(title)}</title></rect>`;
}

export function line(plot: Plot, kind: string, points: readonly (readonly [at: number, value: number])[]): string {
  const places = points.map(([at, value]) => `${short(xOf(plot, at))} ${short(yOf(plot, value))}`);
  return `<path class="${kind}" d="M${places.join("L")}"/>`;
}

/** Vertical lines at round moments, with the seconds since `zeroAt` below. */
export function timeAxis(plot: Plot, zeroAt: number): string {
  const spanMs = plot.untilAt - plot.fromAt;
  const steps = [1_000, 2_000, 5_000, 10_000, 20_000, 60_000, 120_000, 300_000, 600_000];
  const stepMs = steps.find((step) => spanMs / step <= 12) ?? 1_200_000;
  const moments = Array.from({ length: Math.floor(spanMs / stepMs) + 1 }, (_, i) => i * stepMs);
  const bottom = plot.y + plot.height;
  return moments
    .map((ms) => {
      const x = xOf(plot, zeroAt + ms);
      return `<path class="hair" d="M${short(x)} ${plot.y}V${bottom}"/>${label("", [x - 6, bottom + 14], `${ms / 1_000} s`)}`;
    })
    .join("");
}
