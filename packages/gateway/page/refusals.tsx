// Refused writes as they happen, the newest first, with what was presented and what stood there.
import type { RefusalRow } from "../src/page/messages.js";
import { resourceLink } from "./hooks.js";
import type { Known } from "./session.js";
import { printable, reasonFor, timeOf } from "./text.js";

const SHOWN = 100;

export function Refusals({ known: { refusals, hello } }: { readonly known: Known }) {
  return (
    <section class="refusals" aria-labelledby="refusals-title">
      <h2 id="refusals-title">Refused writes</h2>
      <div class="scroller">
        <RefusalTable rows={refusals.slice(0, SHOWN)} of="any" label="Refused writes" />
        {refusals.length === 0 && <p class="none">None since this gateway started.</p>}
      </div>
      <p class="kept">
        {hello?.keepsRefusals === true
          ? "Older ones: palisade refused"
          : "This gateway remembers its last 1 000; PALISADE_REFUSED_LOG=on keeps them."}
      </p>
    </section>
  );
}

interface TableParts {
  readonly rows: readonly RefusalRow[];
  readonly of: "any" | "one";
  readonly label: string;
}

/** Of any resource, with its name; of one, without. */
export function RefusalTable({ rows, of, label }: TableParts) {
  if (rows.length === 0) return null;
  return (
    <table aria-label={label}>
      <thead>
        <tr>
          <th scope="col">At, why</th>
          <th scope="col">{of === "any" ? "Resource, sent by" : "Sent by"}</th>
          <th scope="col" class="token">
            Presented, fence
          </th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <Row key={row.id} row={row} of={of} />
        ))}
      </tbody>
    </table>
  );
}

function Row({ row, of }: { readonly row: RefusalRow; readonly of: TableParts["of"] }) {
  const { at, resource, code, presentedToken, currentToken, caller, address, requestId } = row;
  return (
    <tr class={code === "fencing_token_stale" ? "stale" : ""}>
      <td class="at">
        {timeOf(at)}
        <span class="second why" title={code}>
          {reasonFor(code)}
        </span>
      </td>
      <th scope="row">
        {of === "any" && (
          <a href={resourceLink(resource)} title={printable(resource)}>
            {printable(resource)}
          </a>
        )}
        <span class={of === "any" ? "second" : ""} title={requestId === "" ? undefined : `request ${requestId}`}>
          {printable(caller)}
          {address === "" ? "" : ` from ${printable(address)}`}
        </span>
      </th>
      <td class="token">
        {presentedToken ?? "none"}
        <span class="second">{currentToken === null ? "" : `fence ${currentToken}`}</span>
      </td>
    </tr>
  );
}
