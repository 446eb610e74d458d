// Refused writes, the newest first, with what was presented and what stood there. Equal ones are one
// row, with how many there were.
import type { RefusedWrite } from "../src/messages.js";
import { resourceLink, Table, Token } from "./elements.js";
import { refusalKey } from "./session.js";
import { count, printable, timeOf } from "./text.js";

const reasons: Readonly<Record<string, string>> = {
  fencing_token_stale: "old token",
  fencing_token_unissued: "token never issued",
  sequence_out_of_order: "sequence out of order",
  etag_mismatch: "document has changed",
  verification_unavailable: "lock could not be asked",
  contention: "contention",
  document_too_large: "document too large",
};

interface Refusals {
  readonly rows: readonly RefusedWrite[];
  /** Of any resource, with its name; of one, without. */
  readonly of: "any" | "one";
  readonly label: string;
}

export function RefusalTable({ rows, of, label }: Refusals) {
  if (rows.length === 0) return null;
  return (
    <Table label={label} heads={["At, why", of === "any" ? "Resource, sent by" : "Sent by", "Presented, fence"]}>
      {rows.map((row) => {
        const { at, firstAt, times, resource, code, presentedToken, currentToken, caller, address, requestId } = row;
        return (
          <tr key={refusalKey(row)} class={code === "fencing_token_stale" ? "stale" : ""}>
            <td class="at">
              {timeOf(at)}
              <span class="second why" title={code}>
                {reasons[code] ?? code}
              </span>
            </td>
            <th scope="row">
              {of === "any" && (
                <a href={resourceLink(resource)} title={printable(resource)}>
                  {printable(resource)}
                </a>
              )}
              <span class={of === "any" ? "second" : ""} title={`request ${requestId}`}>
                {printable(caller)}
                {address === "" ? "" : ` from ${printable(address)}`}
              </span>
              {times > 1 && (
                <span class="second words">
                  {count(times)} times since {timeOf(firstAt)}
                </span>
              )}
            </th>
            <td class="token">
              {presentedToken === null ? "none" : <Token of={presentedToken} />}
              <span class="second">
                {currentToken !== null && (
                  <>
                    <span class="wider">fence </span>
                    <Token of={currentToken} />
                  </>
                )}
              </span>
            </td>
          </tr>
        );
      })}
    </Table>
  );
}
