// The picture of a change of members: leases, the highest token and the longest wait in each tenth
// of a second, with the changes shaded.
import { bar, label, legend, MARGIN, roundTicks, short, svgDocument, timeAxis, timeScale, WIDTH } from "./drawing.js";

export interface Taken {
  readonly at: number;
  readonly waitedMs: number;
  /** undefined: the call failed. */
  readonly token?: number;
}

export interface Change {
  /** How many members there are after it. */
  readonly size: number;
  readonly fromAt: number;
  readonly untilAt: number;
}

interface Changed {
  readonly taken: readonly Taken[];
  readonly changes: readonly Change[];
  readonly endsAt: number;
  readonly headline: string;
}

const EVERY_MS = 100;
const PANEL_HEIGHT = 120;
const PANEL_EVERY = 168;
const TOP = 96;
const AXIS_WIDTH = 64;

export function changePicture({ taken, changes, endsAt, headline }: Changed): string {
  const scale = timeScale({ fromAt: 0, untilAt: endsAt }, { x: MARGIN + AXIS_WIDTH, width: WIDTH - 2 * MARGIN - AXIS_WIDTH });
  const lowest = Math.min(...taken.flatMap(({ token }) => token ?? []));
  const panels: readonly (readonly [title: string, values: readonly number[]])[] = [
    ["leases per 100 ms", inSteps(taken, endsAt, (some) => some.filter(({ token }) => token !== undefined).length)],
    [
      "highest token so far, above the lowest",
      rising(inSteps(taken, endsAt, (some) => highest(some.map(({ token = lowest }) => token - lowest)))),
    ],
    ["longest wait of a call, ms", inSteps(taken, endsAt, (some) => highest(some.map(({ waitedMs }) => waitedMs)))],
  ];
  const parts = panels.flatMap(([title, values], i) => {
    const y = TOP + i * PANEL_EVERY;
    const ticks = roundTicks(highest(values));
    const top = ticks.at(-1) ?? 1;
    const place = (value: number): number => y + PANEL_HEIGHT * (1 - value / top);
    const points = values.map((value, step) => `${short(scale((step + 0.5) * EVERY_MS))} ${short(place(value))}`);
    return [
      label("title", scale.x, y - 8)(title),
      ...changes.map((change) => bar(scale, { ...change, y, height: PANEL_HEIGHT, kind: "lease", title: `to ${change.size} members` })),
      timeAxis(scale, { y, height: PANEL_HEIGHT, zeroAt: 0 }),
      ...ticks.map((tick) => label("end", scale.x - 8, place(tick) + 4)(String(tick))),
      `<path class="curve h0" d="M${points.join("L")}"/>`,
    ];
  });
  const names = changes.map(({ size, fromAt }) => label("", scale(fromAt), 72)(`to ${size}`));
  const marks = legend([["lease", "from the call of reconfigure to its answer"]], MARGIN, 56);
  return svgDocument(TOP + panels.length * PANEL_EVERY, headline, [marks, ...names, ...parts]);
}

function inSteps(taken: readonly Taken[], endsAt: number, of: (some: readonly Taken[]) => number): readonly number[] {
  const steps: Taken[][] = Array.from({ length: Math.ceil(endsAt / EVERY_MS) }, () => []);
  for (const one of taken) steps[Math.floor(one.at / EVERY_MS)]?.push(one);
  return steps.map(of);
}

function rising(values: readonly number[]): readonly number[] {
  let most = 0;
  return values.map((value) => {
    most = Math.max(most, value);
    return most;
  });
}

function highest(values: readonly number[]): number {
  return values.reduce((most, value) => Math.max(most, value), 0);
}
