// The outputs: plain lines and the picture, made from a list of events.
import { expect, test } from "vitest";
import type { DemoEvent } from "../../src/output/events.js";
import { plainLines } from "../../src/output/lines.js";
import { Picture } from "../../src/output/picture.js";

const at = { scenario: "pause", act: "fenced" };
const events: readonly DemoEvent[] = [
  { event: "scenario", scenario: "pause", about: "a <worker> & a pause", claim: "With it: kept. Without it: lost.", ttlMs: 500 },
  { event: "act", ...at, actors: ["worker 1", "lock", "gateway", "store"] },
  { event: "step", ...at, atMs: 1, kind: "asks", from: "worker 1", to: "lock", text: "acquire orders/42" },
  { event: "step", ...at, atMs: 2, kind: "answers", from: "lock", to: "worker 1", text: "granted", token: 34 },
  { event: "step", ...at, atMs: 3, kind: "holds", from: "worker 1", text: "holds orders/42" },
  { event: "step", ...at, atMs: 4, kind: "stops", from: "worker 1", text: "stands still" },
  { event: "step", ...at, atMs: 500, kind: "over", from: "worker 1", text: "the lease is over" },
  { event: "step", ...at, atMs: 600, kind: "resumes", from: "worker 1", text: "goes on" },
  { event: "step", ...at, atMs: 1_234.5, kind: "refuses", from: "gateway", to: "worker 1", text: "412 stale" },
  { event: "check", ...at, atMs: 1_300, ok: true, claim: "it is refused" },
  { event: "end", scenario: "pause", ok: true, elapsedMs: 1_400, proven: "The late write is refused." },
];

function shownAt(columns?: number, shown = events): readonly string[] {
  const lines: string[] = [];
  const show = plainLines((line) => lines.push(...line.split("\n")), columns);
  for (const event of shown) show(event);
  const escapes = new RegExp(`${String.fromCharCode(27)}\\[\\d+m`, "g");
  return lines.map((line) => line.replace(escapes, ""));
}

test("plain lines say when, who to whom, and what, and end with what was proven", () => {
  const lines = shownAt();
  expect(lines.slice(1, 4)).toEqual(["pause: a <worker> & a pause", "  With it: kept.", "  Without it: lost."]);
  expect(lines).toContain("  0.001 s  worker 1 → lock       acquire orders/42");
  expect(lines).toContain("  1.234 s  gateway → worker 1    412 stale");
  expect(lines.at(-1)).toBe("✓ The late write is refused.");
});

test("on a narrow terminal no line is longer than it", () => {
  const lines = shownAt(40);
  expect(lines).toContain("  1.234 s  gateway → worker 1: 412 stale");
  expect(lines.slice(0, -1).filter((line) => line.length > 40)).toEqual([]);
});

test("the picture has its verdict above the drawings", () => {
  const html = pictureOf([
    ...events.slice(0, -1),
    { ...at, event: "end", ok: true, elapsedMs: 9, proven: "It is kept. Without it: lost." },
  ]);
  expect(html.indexOf("✓ It is kept.<br>✓ Without it: lost.")).toBeLessThan(html.indexOf('<svg class="act" '));
  expect(html).toContain("✓ It is kept.<br>✓ Without it: lost.");
});

test("the picture is one page that loads nothing, escapes every text and knows light and dark", () => {
  const html = pictureOf(events);
  expect(html).toContain("a &lt;worker&gt; &amp; a pause");
  expect(html).toContain("prefers-color-scheme: dark");
  expect(html).toContain("The late write is refused.");
  expect(html.match(/src=|href="[^#]|https?:|<script|@import/g)).toBeNull();
  expect(drawingOf(html).match(/class="lease"/g)).toHaveLength(1);
  expect(drawingOf(html).match(/url\(#stopped\)/g)).toHaveLength(1);
});

test("the picture shows a lease to its marked end, above the hatching of a process that stands still", () => {
  const drawing = drawingOf(pictureOf(events));
  const bar = /<rect class="lease" x="\d+" y="([\d.]+)" width="10" height="([\d.]+)" rx="2"\/><line class="end" [^>]*y1="([\d.]+)"/.exec(
    drawing,
  );
  expect(Number(bar?.[1]) + Number(bar?.[2])).toBe(Number(bar?.[3]));
  expect(drawing.indexOf("url(#stopped)")).toBeLessThan(drawing.indexOf('class="lease"'));
});

test("the picture cuts tokens to the digits that differ, and leaves other numbers whole", () => {
  const granted = (token: number): DemoEvent => ({
    event: "step",
    ...at,
    atMs: 2,
    kind: "answers",
    from: "lock",
    to: "worker 1",
    text: `granted: token ${token} of 1795005280000`,
    token,
  });
  const drawing = drawingOf(pictureOf([...events.slice(0, 2), granted(1_795_005_288_507), granted(1_795_005_299_507)]));
  expect(drawing).toContain("token …8507 of 1795005280000");
  expect(drawing).toContain("token …9507 of 1795005280000");
});

test("the picture marks the request that replaced an unseen update, and damage is a cross", () => {
  const lost: readonly DemoEvent[] = [
    ...events.slice(0, 2),
    { event: "step", ...at, atMs: 5, kind: "asks", from: "worker 1", to: "store", text: "update" },
    { event: "step", ...at, atMs: 6, kind: "overwrites", from: "store", to: "worker 1", text: "200: stored over another" },
    { event: "check", ...at, atMs: 7, ok: true, damage: true, claim: "an update is lost" },
  ];
  const drawing = drawingOf(pictureOf(lost));
  expect(drawing.match(/<g class="overwrites"/g)).toHaveLength(2);
  expect(drawing).toContain("✗ an update is lost");
  expect(shownAt(undefined, lost)).toContain("  0.007 s  ✗ damage: an update is lost");
});

function pictureOf(shown: readonly DemoEvent[]): string {
  const picture = new Picture();
  for (const event of shown) picture.show(event);
  return picture.html();
}

function drawingOf(html: string): string {
  return /<svg class="act" .*?<\/svg>/s.exec(html)?.[0] ?? "";
}
