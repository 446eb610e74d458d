// The outputs: plain lines, lanes and the picture, made from a list of events.
import { expect, test } from "vitest";
import type { DemoEvent, Output } from "../../src/output/events.js";
import { LaneView } from "../../src/output/lane-view.js";
import { Picture } from "../../src/output/picture.js";
import { PlainLines } from "../../src/output/plain-lines.js";

const at = { scenario: "pause", act: "fenced" };
const events: readonly DemoEvent[] = [
  { event: "scenario", scenario: "pause", about: "a <worker> & a pause", ttlMs: 500 },
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

function shownBy(make: (print: (line: string) => void) => Output): readonly string[] {
  const lines: string[] = [];
  const output = make((line) => lines.push(...line.split("\n")));
  for (const event of events) output.show(event);
  const escapes = new RegExp(`${String.fromCharCode(27)}\\[\\d+m`, "g");
  return lines.map((line) => line.replace(escapes, ""));
}

test("plain lines say when, who to whom, and what, and end with what was proven", () => {
  const lines = shownBy((print) => new PlainLines({ print }));
  expect(lines).toContain("  0.001 s  worker 1 → lock       acquire orders/42");
  expect(lines).toContain("  1.234 s  gateway → worker 1    412 stale");
  expect(lines.at(-1)).toBe("✓ The late write is refused.");
});

test("lanes show a lease as a thick line, a stopped process as a broken one, and a refusal as a cross at whom it hits", () => {
  const lines = shownBy((print) => new LaneView({ columns: 100, print }));
  expect(lines).toContain("  0.001 s  ●───────▶       │       │       acquire orders/42");
  expect(lines).toContain("  1.234 s  ✗───────────────●       │       412 stale");
  expect(lines).toContain("  1.300 s  │       │       │       │       ✓ it is refused");
});

test("on a narrow terminal no line is longer than it, and each worker keeps its number", () => {
  const plain = shownBy((print) => new PlainLines({ columns: 40, print }));
  expect(plain).toContain("  1.234 s  gateway → worker 1: 412 stale");
  for (const columns of [40, 60, 71, 80, 100]) {
    const lines = shownBy((print) => new LaneView({ columns, print })).slice(0, -1);
    expect(lines.filter((line) => line.length > columns)).toEqual([]);
    expect(lines.join("\n")).toMatch(/worker 1|worker .*\n +1 /);
  }
});

test("the picture is one page that loads nothing, escapes every text and knows light and dark", () => {
  const picture = new Picture();
  for (const event of events) picture.show(event);
  const html = picture.html();
  expect(html).toContain("a &lt;worker&gt; &amp; a pause");
  expect(html).toContain("prefers-color-scheme: dark");
  expect(html).toContain("The late write is refused.");
  expect(html.match(/src=|href="[^#]|https?:|<script|@import/g)).toBeNull();
  // A bar where the lease is held, hatching where the process stands still.
  const [drawing = ""] = /<svg class="act" .*<\/svg>/s.exec(html) ?? [];
  expect(drawing.match(/class="lease"/g)).toHaveLength(1);
  expect(drawing.match(/url\(#stopped\)/g)).toHaveLength(1);
});
