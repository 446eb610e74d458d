// The leases that are held now. Only the rows that can be seen are asked for and drawn, so ten
// thousand are as quick as ten.
import { useEffect, useRef, useState } from "preact/hooks";
import type { LeasePage, LeaseRow } from "../src/page/messages.js";
import { resourceLink, useNow } from "./hooks.js";
import type { Known, Session } from "./session.js";
import { count, plural, printable, wholeDuration } from "./text.js";

const ROW_PX = 52;
const AROUND = 12;
const TYPING_MS = 150;
const empty: LeasePage & { readonly at: number } = { look: 0, total: 0, from: 0, rows: [], at: 0 };
const orders = { name: "name", held: "held longest", ends: "ends first" } as const;
type Order = keyof typeof orders;

export function Leases({ session, known: { state, hello } }: { readonly session: Session; readonly known: Known }) {
  const now = useNow(500);
  const [search, setSearch] = useState("");
  const [order, setOrder] = useState<Order>("name");
  const [first, setFirst] = useState(0);
  const [page, setPage] = useState(empty);
  const scroller = useRef<HTMLDivElement>(null);
  const news = state?.leases;
  const from = Math.max(0, first - AROUND);
  const seen = Math.ceil((scroller.current?.clientHeight ?? 600) / ROW_PX) + 2 * AROUND;
  useEffect(() => {
    const left = new AbortController();
    const timer = setTimeout(
      () => {
        const query = new URLSearchParams({ search, order, from: String(from), count: String(Math.min(200, seen)) });
        session.get<LeasePage>(`leases?${query}`, left.signal).then(
          (answer) => setPage({ ...answer, at: performance.now() }),
          () => undefined, // The next look asks again.
        );
      },
      search === "" ? 0 : TYPING_MS,
    );
    return () => {
      clearTimeout(timer);
      left.abort();
    };
  }, [session, search, order, from, seen, state?.at]);
  if (hello?.knowsLock === false) return null;
  const passedMs = now - page.at;
  return (
    <section class="leases" aria-labelledby="leases-title">
      <div class="head">
        <h2 id="leases-title">
          Leases <span class="count">{news?.ageMs === undefined ? "" : `${count(news.held)}${news.more ? "+" : ""}`}</span>
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
        <label>
          <span class="for-readers">Order</span>
          <select onChange={({ currentTarget }) => setOrder(currentTarget.value as Order)}>
            {Object.entries(orders).map(([value, words]) => (
              <option key={value} value={value}>
                {words}
              </option>
            ))}
          </select>
        </label>
      </div>
      {news?.trouble !== undefined && <p class="fault">{printable(news.trouble)}</p>}
      <div class="scroller" ref={scroller} onScroll={({ currentTarget }) => setFirst(Math.floor(currentTarget.scrollTop / ROW_PX))}>
        <table aria-rowcount={page.total + 1} aria-labelledby="leases-title">
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
              <Lease key={row.resource} row={row} index={page.from + at + 2} passedMs={passedMs} />
            ))}
            <Gap rows={Math.max(0, page.total - page.from - page.rows.length)} />
          </tbody>
        </table>
        {page.total === 0 && <p class="none">{noneWords(news?.ageMs === undefined, search)}</p>}
        {search !== "" && !page.rows.some(({ resource }) => resource === search) && (
          <p class="none">
            <a href={resourceLink(search)}>Open the page of {printable(search)}</a>, held or not
          </p>
        )}
      </div>
      <p class="for-readers" role="status">
        {search === "" ? "" : `${plural(page.total, "lease matches", "leases match")}`}
      </p>
    </section>
  );
}

function noneWords(isUnknown: boolean, search: string): string {
  if (isUnknown) return "Asking the nodes…";
  return search === "" ? "Nothing is held now." : "No lease has this in its name or its holder.";
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

interface LeaseParts {
  readonly row: LeaseRow;
  readonly index: number;
  readonly passedMs: number;
}

function Lease({ row, index, passedMs }: LeaseParts) {
  const { resource, state, holder, token, endsInMs, seenForMs } = row;
  const left = endsInMs === undefined ? undefined : endsInMs - passedMs;
  const isOver = left !== undefined && left <= 0;
  return (
    <tr class={isOver || state === "free" ? "over" : state} aria-rowindex={index}>
      <th scope="row">
        <a href={resourceLink(resource)} title={printable(resource)}>
          {printable(resource)}
        </a>
        <span class="second">{state === "held" ? printable(holder) : state === "free" ? "given back" : <strong>{state}</strong>}</span>
      </th>
      <td class="time">
        {state === "free" || isOver ? "ended" : left === undefined ? "" : wholeDuration(left)}
        <span class="second">≥ {wholeDuration(Math.max(1_000, seenForMs + passedMs))}</span>
      </td>
      <td class="token">{token}</td>
    </tr>
  );
}
