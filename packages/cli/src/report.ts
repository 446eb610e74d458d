// What a command found, and how it is shown: a table or lines for people, JSON for programs, cells
// parted by tabs where the output is piped.
import { padded, printable, shortened, widthOf } from "./text.js";

type Colour = "red" | "green" | "yellow" | "dim" | "bold";
export interface Cell {
  readonly text: string;
  readonly colour?: Colour | undefined;
}
export interface Table {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly (string | Cell)[])[];
  /** Shortened first where the terminal is narrow. */
  readonly widest: number;
}

export interface Report {
  /** For --json. */
  readonly json: unknown;
  readonly table?: Table;
  /** Shown below the table; not where the output is piped and there is a table. */
  readonly lines?: readonly (string | Cell)[];
  readonly exitCode?: 0 | 1;
}

/** How this output is written: with colours, and within so many columns. */
export interface Style {
  readonly colours: boolean;
  /** Undefined: piped. */
  readonly columns: number | undefined;
}

/** Where a column would have fewer, its words could not be told apart. */
const LEAST = 12;

const codes: Readonly<Record<Colour, readonly [number, number]>> = {
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  dim: [2, 22],
  bold: [1, 22],
};

export function render(report: Report, style: Style): string {
  const { table, lines = [] } = report;
  const shown = table !== undefined && style.columns === undefined ? [] : lines;
  return [
    ...(table === undefined || table.rows.length === 0 ? [] : tableLines(table, style)),
    ...shown.map((line) => painted(asCell(line), style)),
  ]
    .map((line) => `${line}\n`)
    .join("");
}

function tableLines({ columns, rows, widest }: Table, style: Style): string[] {
  const cells = rows.map((row) => row.map((cell) => ({ ...asCell(cell), text: printable(asCell(cell).text) })));
  if (style.columns === undefined) return cells.map((row) => row.map(({ text }) => text).join("\t"));
  // What no row has takes no room.
  const widths = columns.map((title, at) => {
    const most = Math.max(0, ...cells.map((row) => widthOf(row[at]?.text ?? "")));
    return most === 0 ? 0 : Math.max(widthOf(title), most);
  });
  if (!fit(widths, { widest, into: style.columns })) return cells.flatMap((row) => recordLines({ columns, row }, style));
  const line = (row: readonly Cell[]) =>
    row
      .flatMap((cell, at) => {
        const width = widths[at] ?? 0;
        return width === 0 ? [] : [painted({ ...cell, text: padded(shortened(cell.text, width), width) }, style)];
      })
      .join("  ")
      .trimEnd();
  return [line(columns.map((text) => ({ text, colour: "dim" }))), ...cells.map(line)];
}

/** One row below the other, without what is empty: for a terminal too narrow for a table. */
function recordLines({ columns, row }: { readonly columns: readonly string[]; readonly row: readonly Cell[] }, style: Style): string[] {
  const titles = Math.max(...columns.map(widthOf));
  const width = Math.max(LEAST, (style.columns ?? 0) - titles - 2);
  const lines = row.flatMap((cell, at) => {
    if (cell.text === "") return [];
    const title = padded(columns[at] ?? "", titles);
    return [`${painted({ text: title, colour: "dim" }, style)}  ${painted({ ...cell, text: shortened(cell.text, width) }, style)}`];
  });
  return [...lines, ""];
}

/** Narrows the one that may be shortened, and then whichever is the widest. False: too narrow. */
function fit(widths: number[], { widest, into }: { readonly widest: number; readonly into: number }): boolean {
  const shown = widths.filter((width) => width > 0).length;
  const total = () => widths.reduce((sum, width) => sum + width, 2 * (shown - 1));
  widths[widest] = Math.max(Math.min(LEAST, widths[widest] ?? 0), (widths[widest] ?? 0) - Math.max(0, total() - into));
  while (total() > into) {
    const at = widths.indexOf(Math.max(...widths));
    if ((widths[at] ?? 0) <= LEAST) return false;
    widths[at] = (widths[at] ?? 0) - 1;
  }
  return true;
}

function asCell(cell: string | Cell): Cell {
  return typeof cell === "string" ? { text: cell } : cell;
}

function painted({ text, colour }: Cell, { colours }: Style): string {
  if (!colours || colour === undefined) return text;
  const [on, off] = codes[colour];
  return `\u001b[${on}m${text}\u001b[${off}m`;
}
