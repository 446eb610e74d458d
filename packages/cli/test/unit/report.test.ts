// How a report looks: on terminals of any width, piped, and with names that try to steer it.
import fc from "fast-check";
import stringWidth from "string-width";
import { expect, test } from "vitest";
import { render, type Table } from "#cli/report.js";
import { duration, printable } from "#cli/text.js";

const table: Table = {
  columns: ["resource", "holder", "token"],
  rows: [
    ["orders/4200000000000000000000000000000000000000", { text: "worker-1", colour: "yellow" }, "179506869769500"],
    ["注文/42", "worker-2", "7"],
  ],
  widest: 0,
};

test("on a terminal columns are aligned by what a character takes, and a long name goes on in the next line", () => {
  const [titles, first = "", rest = "", second = ""] = render({ json: {}, table }, { colours: false, columns: 60 }).split("\n");
  expect(titles).toMatch(/^resource +holder +token$/);
  expect(`${first.split(" ")[0]}${rest}`).toBe("orders/4200000000000000000000000000000000000000");
  expect(stringWidth(first)).toBeLessThanOrEqual(60);
  expect(stringWidth(second.slice(0, second.indexOf("worker-2")))).toBe(stringWidth(first.slice(0, first.indexOf("worker-1"))));
});

test("no name is ever cut, however narrow the terminal is", () => {
  for (let columns = 20; columns <= 100; columns++) {
    const shown = render({ json: {}, table }, { colours: false, columns });
    const cells = shown.split("\n").map((line) => line.replace(/^resource {2}|^ +/, "").split(" ")[0]);
    expect([columns, cells.join("")]).toEqual([columns, expect.stringContaining("orders/4200000000000000000000000000000000000000")]);
  }
});

test("a table of many columns fits a terminal of 40 columns", () => {
  const columns = ["at", "resource", "why", "presented", "fence", "by"];
  const row = ["2026-11-19T06:11:42.342Z", "orders/42", "fencing_token_stale", "179506869769401", "179506869769403", "anonymous"];
  for (const line of render({ json: {}, table: { columns, rows: [row], widest: 1 } }, { colours: false, columns: 40 }).split("\n"))
    expect(stringWidth(line)).toBeLessThanOrEqual(40);
});

test("a terminal too narrow to tell the words of a table apart gets one line for each cell, and a column without words none", () => {
  const columns = ["node", "address", "why"];
  const rows = [["n1", "redis-1.redis.internal:6379", ""]];
  const shown = (width: number) => render({ json: {}, table: { columns, rows, widest: 2 } }, { colours: false, columns: width });
  expect(shown(40)).toBe("node  address\nn1    redis-1.redis.internal:6379\n");
  expect(shown(20)).toBe("node  address\nn1    redis-1.redis…\n");
  const titles = Array.from({ length: 4 }, (_, at) => `column ${at}`);
  const values = titles.map((_, at) => `value number ${at}`);
  expect(render({ json: {}, table: { columns: titles, rows: [values], widest: 0 } }, { colours: false, columns: 40 })).toBe(
    `${values.map((value, at) => `column ${at}  ${value}\n`).join("")}\n`,
  );
});

test("piped: no titles, no colours, cells parted by tabs, nothing shortened, no remarks", () => {
  const piped = render({ json: {}, table, lines: ["2 held"] }, { colours: false, columns: undefined });
  expect(piped).toBe("orders/4200000000000000000000000000000000000000\tworker-1\t179506869769500\n注文/42\tworker-2\t7\n");
});

test("colours are closed where they were opened", () => {
  expect(render({ json: {}, lines: [{ text: "x", colour: "red" }] }, { colours: true, columns: 80 })).toBe("\u001b[31mx\u001b[39m\n");
});

test("no text from elsewhere reaches a terminal as a command, however it is made", () => {
  expect(printable("a\u001b]0;title\u0007b\u202ec")).toBe("a\\u{1b}]0;title\\u{7}b\\u{202e}c");
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (name) => {
      const shown = render({ json: {}, table: { columns: ["name"], rows: [[name]], widest: 0 } }, { colours: false, columns: 40 });
      expect(shown.replace(/\n/g, "")).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
      for (const line of shown.split("\n")) expect(stringWidth(line)).toBeLessThanOrEqual(40);
    }),
  );
});

test("durations in the unit that fits", () => {
  expect([950, 9_840, 250_000, 11_100_000, 1_036_800_000].map(duration)).toEqual(["950 ms", "9.8 s", "4 min 10 s", "3 h 5 min", "12 days"]);
});
