// The whole soak as one SVG that needs nothing else: what was done, what disturbed it, and every curve as a small multiple. Readable at 1280 pixels. Pure.
import { whole } from "../../../report/table.js";
import type { Asked } from "../arguments.js";
import { type Finding, isFlat, isJudged } from "../findings.js";
import type { Outcome } from "../run.js";
import { drawPanel } from "./panel.js";
import { escaped } from "./scale.js";
import { drawStrip, stripHeight } from "./strip.js";
import { HUES, style } from "./style.js";

const WIDTH = 1280;
const MARGIN = 28;
const COLUMNS = 5;
const GAP = 20;
const PANEL_HEIGHT = 140;
const ROW_HEIGHT = 154;
const GROUP_HEIGHT = 34;
const HEAD_HEIGHT = 92;

const panelWidth = (WIDTH - 2 * MARGIN - (COLUMNS - 1) * GAP) / COLUMNS;

export function draw(asked: Asked, outcome: Pick<Outcome, "chronicle" | "operations">, findings: readonly Finding[]): string {
  const { chronicle } = outcome;
  const parts = [head(asked, outcome, findings)];
  parts.push(drawStrip(chronicle.disturbances, { x: MARGIN, y: HEAD_HEIGHT, width: WIDTH - 2 * MARGIN }, chronicle.lastMs));
  let y = HEAD_HEIGHT + stripHeight(chronicle.disturbances) + 14;
  const measured = findings.filter(({ curves }) => curves.length > 0);
  for (const group of new Set(measured.map(({ panel }) => panel.group))) {
    const members = measured.filter(({ panel }) => panel.group === group);
    parts.push(groupHead(group, members, y));
    members.forEach((finding, i) => {
      const x = MARGIN + (i % COLUMNS) * (panelWidth + GAP);
      const top = y + GROUP_HEIGHT + Math.floor(i / COLUMNS) * ROW_HEIGHT;
      parts.push(drawPanel(finding, { x, y: top, width: panelWidth, height: PANEL_HEIGHT }, chronicle.lastMs));
    });
    y += GROUP_HEIGHT + Math.ceil(members.length / COLUMNS) * ROW_HEIGHT;
  }
  const height = y + MARGIN / 2;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-labelledby="what">`,
    style,
    `<rect class="surface" width="${WIDTH}" height="${height}"/>`,
    ...parts,
    "</svg>\n",
  ].join("\n");
}

function head(
  { clients, perSecond, leaks }: Asked,
  { chronicle, operations }: Pick<Outcome, "chronicle" | "operations">,
  findings: readonly Finding[],
): string {
  const measured = findings.filter(({ curves }) => curves.length > 0);
  const judged = measured.filter(isJudged);
  const curves = judged.flatMap((finding) => finding.curves.filter(({ verdict }) => verdict.kind !== "not judged")).length;
  const bad = judged.filter((finding) => !isFlat(finding)).length;
  const done = Object.values(operations).reduce((sum, count) => sum + count, 0);
  const minutes = (chronicle.lastMs / 60_000).toFixed(chronicle.lastMs < 600_000 ? 1 : 0);
  const title = `${minutes} minutes of contended load: ${curves} curves, ${bad === 0 ? "all flat" : `not flat in ${bad} of ${judged.length} panels`}`;
  const work = `${whole(done)} operations of ${clients} client processes, about ${perSecond} per second; five Redis nodes (appendfsync always), a gateway, Postgres; ${chronicle.disturbances.length} disturbances`;
  const how = `The shaded third warms up and is not judged. Dashed: the trend of the steepest curve of a panel; its slope is beside the verdict.${leaks.length === 0 ? "" : ` Control: client 1 leaks ${leaks.join(", ")}.`}`;
  return [
    `<text class="headline" id="what" x="${MARGIN}" y="38">${escaped(title)}</text>`,
    `<text class="remark" x="${MARGIN}" y="59">${escaped(work)}</text>`,
    `<text class="remark" x="${MARGIN}" y="76">${escaped(how)}</text>`,
  ].join("\n");
}

/** With the names of the curves, where a panel has several. */
function groupHead(group: string, members: readonly Finding[], y: number): string {
  const names = members[0]?.curves.map(({ name }) => name) ?? [];
  const keys = names.length < 2 ? [] : names.map((name, i) => key(name, i, y));
  return [
    `<path class="hair" d="M${MARGIN} ${y + 2}H${WIDTH - MARGIN}"/>`,
    `<text class="group" x="${MARGIN}" y="${y + 22}">${escaped(group)}</text>`,
    ...keys,
  ].join("\n");
}

function key(name: string, i: number, y: number): string {
  const x = MARGIN + 150 + i * 74;
  return `<rect class="k${i % HUES}" x="${x}" y="${y + 16}" width="14" height="3"/><text x="${x + 19}" y="${y + 22}">${escaped(name)}</text>`;
}
