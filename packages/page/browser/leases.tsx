// The leases that are held now. Only the rows that can be seen are asked for and drawn, so ten
// thousand are as quick as ten.
import { useEffect, useRef, useState } from "preact/hooks";
import type { LeasePage, LeaseQuestion, LeaseRow, LeasesNews } from "../src/messages.js";
import { resourceLink, Token, useNow } from "./elements.js";
import { session } from "./session.js";
import { count, duration, plural, printable } from "./text.js";

const ROW_PX = 52;
const AROUND = 12;
const TYPING_MS = 150;
const empty: LeasePage & { readonly at: number } = { total: 0, from: 0, rows: [], at: 0 };
const orders: Readonly<Record<LeaseQuestion["order"], string>> = {
  waiting: "most waited for",
  name: "name",
  held: "held longest",
  ends: "ends first",
};

export function Leases({ news, stateAt }: { readonly news: LeasesNews | undefined; readonly stateAt: number }) {
  const now = useNow(500);
  const [search, setSearch] = useState("");
  const [order, setOrder] = useState("waiting");
  const [first, setFirst] = useState(0);
  const [page, setPage] = useState(empty);
  const scroller = useRef<HTMLDivElement>(null);
  const from = Math.max(0, first - AROUND);
  const seen = Math.min(200, Math.ceil((scroller.current?.clientHeight ?? 600) / ROW_PX) + 2 * AROUND);
  // Asked again with each state that comes.
  useEffect(() => {
    const left = new AbortController();
    const ask = async () => {
      const query = new URLSearchParams({ search, order, from: String(from), count: String(seen) });
      setPage({ ...(await session.ask<LeasePage>(`leases?${query}`, left)), at: performance.now() });
    };
    const timer = setTimeout(() => ask().catch(() => undefined), search === "" ? 0 : TYPING_MS);
    return () => {
      clearTimeout(timer);
      left.abort();
    };
  }, [search, order, from, seen, stateAt]);
  const none =
    news?.held === undefined
      ? "Asking the nodes…"
      : search === ""
        ? `Nothing ${news.trouble === undefined ? "is held now" : "was held when last seen"}.`
        : "No lease has this in its name or its holder.";
  return (
    <section class="leases" aria-label="Leases">
      <div class="head">
        <h2>
          Leases <span class="count">{news?.held === undefined ? "" : `${count(news.held)}${news.more ? "+" : ""}`}</span>
        </h2>
        <input
          type="search"
          aria-label="Find by name or holder"
          placeholder="Find by name or holder"
          spellcheck={false}
          onInput={({ currentTarget }) => {
            setSearch(currentTarget.value);
            setFirst(0);
            scroller.current?.scrollTo(0, 0);
          }}
        />
        <select aria-label="Order" onChange={({ currentTarget }) => setOrder(currentTarget.value)}>
          {Object.entries(orders).map(([value, words]) => (
            <option key={value} value={value}>
              {words}
            </option>
          ))}
        </select>
      </div>
      {news?.trouble !== undefined && <p class="fault">{printable(news.trouble)}</p>}
      <div class="scroller" ref={scroller} onScroll={({ currentTarget }) => setFirst(Math.floor(currentTarget.scrollTop / ROW_PX))}>
        <table aria-rowcount={page.total + 1} aria-label="Leases">
          <thead>
            <tr aria-rowindex={1}>
              <th scope="col">Resource, holder</th>
              <th scope="col" class="time">
                Ends in<span class="wider">, held for</span>
              </th>
              <th scope="col" class="token">
                Token
              </th>
            </tr>
          </thead>
          <tbody>
            <Gap rows={page.from} />
            {page.rows.map((row, at) => (
              <Lease key={row.resource} row={row} index={page.from + at + 2} passedMs={now - page.at} />
            ))}
            <Gap rows={page.total - page.from - page.rows.length} />
          </tbody>
        </table>
        {page.total === 0 && <p class="none">{none}</p>}
        {search !== "" && !page.rows.some(({ resource }) => resource === search) && (
          <p class="none">
            <a href={resourceLink(search)}>Open the page of {printable(search)}</a>, held or not
          </p>
        )}
      </div>
      <p class="for-readers" role="status">
        {search === "" ? "" : plural(page.total, "lease matches", "leases match")}
      </p>
    </section>
  );
}

/** Stands for the rows that are not drawn. */
function Gap({ rows }: { readonly rows: number }) {
  if (rows <= 0) return null;
  return (
    <tr class="gap" style={{ height: `${rows * ROW_PX}px` }}>
      <td colSpan={3} />
    </tr>
  );
}

function Lease({ row, index, passedMs }: { readonly row: LeaseRow; readonly index: number; readonly passedMs: number }) {
  const { resource, state, holder, token, endsInMs, seenForMs, waiting, oldMs } = row;
  const left = endsInMs === undefined ? undefined : endsInMs - passedMs;
  const isOld = oldMs !== undefined;
  const isOver = state === "free" || (left !== undefined && left <= 0);
  return (
    <tr class={isOld ? "old" : isOver ? "over" : state} aria-rowindex={index}>
      <th scope="row">
        <a href={resourceLink(resource)} title={printable(resource)}>
          {printable(resource)}
        </a>
        <span class="second">
          {waiting > 0 && <strong class="waits">{plural(waiting, "waits", "wait")} · </strong>}
          {state === "held" ? printable(holder) : state === "free" ? "given back" : <strong>{state}</strong>}
        </span>
      </th>
      <td class="time">
        {isOld ? "old, seen" : isOver ? "ended" : left === undefined ? "" : duration(left)}
        <span class="second">
          {isOld ? `${duration(Math.max(1_000, oldMs + passedMs))} ago` : `≥ ${duration(Math.max(1_000, seenForMs + passedMs))}`}
        </span>
      </td>
      <td class="token">
        <Token of={token} />
      </td>
    </tr>
  );
}
