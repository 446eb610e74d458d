// Pictures of results: a panel of horizontal bars for each, in one drawing that follows the light
// or dark scheme of its reader.
import { element, escaped, svgDocument } from "@palisade/testkit";
import { shown } from "../measure/results.js";

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

const style = `svg{--surface:#fcfcfb;--ink:#1d1d1b;--muted:#6b6a64;--ours:#2a6fbb;--peer:#a9b4be;--bound:#d8dde1;color-scheme:light dark}
@media(prefers-color-scheme:dark){svg{--surface:#16181c;--ink:#e9e8e4;--muted:#9b9a94;--ours:#6aa9ee;--peer:#5d6873;--bound:#363d44}}
text{font-family:system-ui,-apple-system,"Segoe UI","Liberation Sans",sans-serif;font-size:12px;fill:var(--muted)}
.surface{fill:var(--surface)}.title{font-size:15px;font-weight:600;fill:var(--ink)}.end{text-anchor:end}
.ours{fill:var(--ours)}.peer{fill:var(--peer)}.bound{fill:var(--bound)}text.ours{fill:var(--ink);font-weight:600}`;

const text = (kind: string | undefined, [x, y]: readonly [number, number], content: string): string =>
  element("text", { class: kind, x, y }, escaped(content));

function drawn({ title, remark, digits, bars }: Panel, top: number): string {
  const most = Math.max(...bars.map(({ value }) => value), Number.MIN_VALUE);
  const rows = bars.map(({ name, value, kind }, i) => {
    const y = top + HEAD + i * ROW;
    const width = Math.max(1, ((WIDTH - LEFT - RIGHT) * value) / most);
    return [
      text(kind === "ours" ? "end ours" : "end", [LEFT - 10, y + 13], name),
      element("rect", { class: kind, x: LEFT, y: y + 2, width, height: ROW - 7, rx: 2 }),
      text(kind === "ours" ? "ours" : undefined, [LEFT + width + 6, y + 13], shown(value, digits)),
    ].join("\n");
  });
  return [text("title", [24, top + 22], title), text(undefined, [24, top + 40], remark), ...rows].join("\n");
}

export function chart(label: string, panels: readonly Panel[], note: string): string {
  let height = GAP;
  const parts = panels.map((panel) => {
    const top = height;
    height += HEAD + panel.bars.length * ROW + GAP;
    return drawn(panel, top);
  });
  height += GAP;
  return svgDocument({ width: WIDTH, height, label, style }, [...parts, text(undefined, [24, height - GAP / 2], note)]);
}
