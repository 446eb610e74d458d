// What the pictures of all runs are drawn with: a document and its page, colours, scales, axes,
// bars, labels, a legend.
import type { Span } from "../history/records.js";

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

/** The fewest round steps from zero that reach the highest value; 2 to 4 of them. */
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

/** For up to so many curves in one panel. */
export const HUES = 6;

const light = {
  surface: "#fcfcfb",
  ink: "#1d1d1b",
  muted: "#6b6a64",
  hair: "#e4e2dc",
  shade: "#f3f2ee",
  bad: "#b3261e",
  good: "#2f8f5b",
  doubt: "#d99a1c",
  look: "#5b8bd0",
  lease: "#dfe9f6",
  silence: "#f6e3e1",
  nodes: "#d9782d",
  links: "#7f8fa9",
  gateways: "#8a5fc7",
  store: "#b8484f",
  clients: "#2c9a9a",
  ambush: "#4b5563",
};
const dark = {
  surface: "#16181c",
  ink: "#e9e8e4",
  muted: "#9b9a94",
  hair: "#2e3137",
  shade: "#1c1f24",
  bad: "#ff8a80",
  good: "#4dbd83",
  doubt: "#e6b24c",
  look: "#7aa7e8",
  lease: "#26364a",
  silence: "#3b2423",
  nodes: "#e9975a",
  links: "#7888a3",
  gateways: "#ad8be3",
  store: "#dd7479",
  clients: "#4fbcbc",
  ambush: "#a3acb9",
};
const hues = {
  light: ["#2a6fbb", "#c4651a", "#2f8a57", "#9a4fb0", "#8a7320", "#5b6770"],
  dark: ["#6aa9ee", "#e79a5b", "#63c08d", "#c78bdb", "#cbb45c", "#a3b0ba"],
};

function variables(colours: Readonly<Record<string, string>>, curves: readonly string[]): string {
  const named = Object.entries(colours).map(([name, value]) => `--${name}:${value}`);
  return [...named, ...curves.map((value, i) => `--hue${i}:${value}`)].join(";");
}

const fills = ["good", "doubt", "look", "lease", "silence", "nodes", "links", "gateways", "store", "clients", "ambush"];

export const style = `<style>
svg{${variables(light, hues.light)};color-scheme:light dark}
@media(prefers-color-scheme:dark){svg{${variables(dark, hues.dark)}}}
text{font-family:system-ui,-apple-system,"Segoe UI","Liberation Sans",sans-serif;font-size:11px;fill:var(--muted)}
.surface{fill:var(--surface)}.warm{fill:var(--shade)}
.headline{font-size:20px;font-weight:600;fill:var(--ink)}.remark{font-size:12.5px}
.group{font-size:14px;font-weight:600;fill:var(--ink)}.title{font-size:12px;fill:var(--ink)}
.end{text-anchor:end}.middle{text-anchor:middle}
.bad{fill:var(--bad);font-weight:700}.pause,.revision{fill:var(--ink)}
${fills.map((name) => `.${name}{fill:var(--${name})}`).join("")}
.hair{stroke:var(--hair);stroke-width:1;fill:none}.moment{stroke:var(--bad);stroke-dasharray:3 3}
.base{stroke:var(--muted);stroke-width:1;fill:none}
.curve{fill:none;stroke-width:1.3;stroke-linejoin:round}
${hues.light.map((_, i) => `.h${i}{stroke:var(--hue${i})}.k${i}{fill:var(--hue${i})}`).join("")}
.trend{stroke:var(--ink);stroke-width:1.3;stroke-dasharray:4 3;fill:none}
.trend.worse{stroke:var(--bad);stroke-width:2}
.mark{stroke:var(--muted);stroke-width:1.5}
</style>`;

export function page(title: string, svg: string): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>${escaped(title)}</title>
<style>:root{color-scheme:light dark}body{margin:0}svg{display:block;margin:auto;max-width:100%;height:auto}</style></head>
<body>${svg}</body></html>
`;
}
