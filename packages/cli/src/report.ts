// What a command found, and how it is shown: a table or lines for people, JSON for programs, cells
// parted by tabs where the output is piped.
import { inLines, padded, printable, shortened, widthOf } from "./text.js";

type Colour = "red" | "green" | "yellow" | "dim" | "bold";
export interface Cell {
  readonly text: string;
  readonly colour?: Colour | undefined;
}
export interface Table {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly (string | Cell)[])[];
  /** Goes on in further lines where the terminal is narrow, and is never cut: a name, or why. */
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
/** Of the one that is never cut: where it would have fewer, one row stands below the other. */
const LEAST_WHOLE = 24;

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
  if (!fit(widths, { widest, into: style.columns })) return cells.flatMap((row) => recordLines({ columns, row, widest }, style));
  const line = (row: readonly Cell[]) =>
    row
      .flatMap((cell, at) => {
        const width = widths[at] ?? 0;
        return width === 0 ? [] : [painted({ ...cell, text: padded(shortened(cell.text, width), width) }, style)];
      })
      .join("  ")
      .trimEnd();
  const lines = (row: readonly Cell[]) =>
    inLines(row[widest]?.text ?? "", widths[widest] ?? 0).map((text, index) =>
      line(row.map((cell, at) => (at === widest ? { ...cell, text } : index === 0 ? cell : { text: "" }))),
    );
  return [line(columns.map((text) => ({ text, colour: "dim" }))), ...cells.flatMap(lines)];
}

interface Row {
  readonly columns: readonly string[];
  readonly row: readonly Cell[];
  readonly widest: number;
}

/** One row below the other, without what is empty: for a terminal too narrow for a table. */
function recordLines({ columns, row, widest }: Row, style: Style): string[] {
  const titles = Math.max(...columns.map(widthOf));
  const width = Math.max(LEAST, (style.columns ?? 0) - titles - 2);
  const lines = row.flatMap((cell, at) => {
    if (cell.text === "") return [];
    const texts = at === widest ? inLines(cell.text, width) : [shortened(cell.text, width)];
    return texts.map((text, index) => {
      const title = padded(index === 0 ? (columns[at] ?? "") : "", titles);
      return `${painted({ text: title, colour: "dim" }, style)}  ${painted({ ...cell, text }, style)}`;
    });
  });
  return [...lines, ""];
}

/** Narrows the one that goes on in further lines, and then whichever of the others is the widest. False: too narrow. */
function fit(widths: number[], { widest, into }: { readonly widest: number; readonly into: number }): boolean {
  const shown = widths.filter((width) => width > 0).length;
  const total = () => widths.reduce((sum, width) => sum + width, 2 * (shown - 1));
  widths[widest] = Math.max(Math.min(LEAST_WHOLE, widths[widest] ?? 0), (widths[widest] ?? 0) - Math.max(0, total() - into));
  while (total() > into) {
    const most = Math.max(...widths.filter((_, at) => at !== widest));
    const at = widths.findIndex((width, index) => index !== widest && width === most);
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
