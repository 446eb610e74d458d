// Pictures of results: a panel of horizontal bars for each, in one drawing that follows the light
// or dark scheme of its reader.
import { shown } from "../measure/text.js";

export interface Bar {
  readonly name: string;
  readonly value: number;
  readonly kind: "ours" | "peer" | "bound";
}

export interface Panel {
  readonly title: string;
  /** What the length of a bar says, and which direction is good. */
  readonly remark: string;
  readonly digits: number;
  readonly bars: readonly Bar[];
}

const WIDTH = 900;
const LEFT = 300;
const RIGHT = 90;
const ROW = 22;
const HEAD = 52;
const GAP = 18;

const style = `<style>
svg{--surface:#fcfcfb;--ink:#1d1d1b;--muted:#6b6a64;--ours:#2a6fbb;--peer:#a9b4be;--bound:#d8dde1;color-scheme:light dark}
@media(prefers-color-scheme:dark){svg{--surface:#16181c;--ink:#e9e8e4;--muted:#9b9a94;--ours:#6aa9ee;--peer:#5d6873;--bound:#363d44}}
text{font-family:system-ui,-apple-system,"Segoe UI","Liberation Sans",sans-serif;font-size:12px;fill:var(--muted)}
.surface{fill:var(--surface)}.title{font-size:15px;font-weight:600;fill:var(--ink)}.end{text-anchor:end}
.ours{fill:var(--ours)}.peer{fill:var(--peer)}.bound{fill:var(--bound)}text.ours{fill:var(--ink);font-weight:600}
</style>`;

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}

function drawn({ title, remark, digits, bars }: Panel, top: number): string {
  const most = Math.max(...bars.map(({ value }) => value), Number.MIN_VALUE);
  const rows = bars.map(({ name, value, kind }, i) => {
    const y = top + HEAD + i * ROW;
    const width = Math.max(1, ((WIDTH - LEFT - RIGHT) * value) / most);
    const strong = kind === "ours" ? " ours" : "";
    return [
      `<text class="end${strong}" x="${LEFT - 10}" y="${y + 13}">${escaped(name)}</text>`,
      `<rect class="${kind}" x="${LEFT}" y="${y + 2}" width="${width.toFixed(1)}" height="${ROW - 7}" rx="2"/>`,
      `<text class="${strong.trim()}" x="${(LEFT + width + 6).toFixed(1)}" y="${y + 13}">${shown(value, digits)}</text>`,
    ].join("\n");
  });
  return [
    `<text class="title" x="24" y="${top + 22}">${escaped(title)}</text>`,
    `<text x="24" y="${top + 40}">${escaped(remark)}</text>`,
    ...rows,
  ].join("\n");
}

export function chart(label: string, panels: readonly Panel[], note: string): string {
  let height = GAP;
  const parts = panels.map((panel) => {
    const top = height;
    height += HEAD + panel.bars.length * ROW + GAP;
    return drawn(panel, top);
  });
  height += GAP;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="${escaped(label)}">`,
    style,
    `<rect class="surface" width="${WIDTH}" height="${height}"/>`,
    ...parts,
    `<text x="24" y="${height - GAP / 2}">${escaped(note)}</text>`,
    "</svg>\n",
  ].join("\n");
}
