// One resource: who holds it, what stands in the store, what was written and refused, and taking the
// lock away.
import { useEffect, useState } from "preact/hooks";
import type { FenceMoved, FenceView, LockView, NodeAnswer, ResourceView, Trouble } from "../src/messages.js";
import { Section, Table, Token, useNow } from "./elements.js";
import { RefusalTable } from "./refusals.js";
import { ReleaseDialog } from "./release.js";
import { session } from "./session.js";
import { count, duration, isTrouble, plural, printable, timeOf, unlessTrouble } from "./text.js";
import { Timeline } from "./timeline.js";

const LOOK_EVERY_MS = 1_000;

export function ResourcePage({ resource }: { readonly resource: string }) {
  const [look, setLook] = useState<{ readonly view: ResourceView; readonly at: number }>();
  const [fault, setFault] = useState("");
  const [asked, setAsked] = useState<LockView>();
  const [looks, setLooks] = useState(0);
  const now = useNow(500);
  // Each look, or an order to take the lock away, is followed by the next one.
  useEffect(() => {
    const left = new AbortController();
    const lookAgain = async () => {
      try {
        const view = await session.ask<ResourceView>(`resource?${new URLSearchParams({ name: resource })}`, left);
        setLook({ view, at: performance.now() });
        setFault("");
      } catch (error) {
        if (!left.signal.aborted) setFault((error as Error).message);
      }
    };
    let timer = 0;
    const again = () => void lookAgain().then(() => (timer = left.signal.aborted ? 0 : setTimeout(again, LOOK_EVERY_MS)));
    again();
    return () => {
      left.abort();
      clearTimeout(timer);
    };
  }, [resource, looks]);
  const view = look?.view;
  const passedMs = now - (look?.at ?? now);
  const lock = unlessTrouble(view?.lock);
  return (
    <div class="resource">
      <nav aria-label="Back">
        <a href="#/">← All leases</a>
      </nav>
      <h1>{printable(resource)}</h1>
      {fault !== "" && (
        <p class="fault" role="alert">
          {fault}
        </p>
      )}
      {view !== undefined && (
        <>
          <section class="facts" aria-label="State">
            <Fact {...lockFact(view, passedMs)} />
            <Fact {...fenceFact(view.fence, lock)} />
          </section>
          {view.mayRelease && lock !== undefined && lock.state !== "free" && (
            <button type="button" class="act bad" onClick={() => setAsked(lock)}>
              Take the lock away…
            </button>
          )}
          <Timeline view={view} passedMs={passedMs} />
          {lock !== undefined && <Answers nodes={lock.nodes} passedMs={passedMs} />}
          <Section title="Refused writes">
            <div class="wide">
              <RefusalTable rows={view.refusals} of="one" label="Refused writes of this resource" />
            </div>
            {view.refusals.length === 0 && <p class="none">None by this gateway since {timeOf(view.refusedSince)}.</p>}
          </Section>
          <History history={view.history} />
        </>
      )}
      {asked !== undefined && (
        <ReleaseDialog resource={resource} lock={asked} onDone={() => setLooks(looks + 1)} onClose={() => setAsked(undefined)} />
      )}
    </div>
  );
}

interface Shown {
  readonly title: string;
  readonly value: string;
  readonly more: string;
  readonly tone?: "bad";
}

function Fact({ title, tone, value, more }: Shown) {
  return (
    <div class={`fact ${tone ?? ""}`}>
      <h2>{title}</h2>
      <p class="value">{value}</p>
      <p>{more}</p>
    </div>
  );
}

function lockFact({ at, lock, history }: ResourceView, passedMs: number): Shown {
  const title = "Lock";
  if (lock === undefined) return { title, value: "not known here", more: "This gateway does not know the lock's nodes." };
  if (isTrouble(lock)) return { title, tone: "bad", value: "not known", more: printable(lock.trouble) };
  const { state, holder, token, endsInMs, seenForMs, waiting, last } = lock;
  const issued = token === 0 ? "" : `Highest token ${token}.`;
  if (state === "free") return { title, value: "free", more: issued };
  const split = "No holder has a quorum, and none can get one before these leases end.";
  if (state === "split") return { title, tone: "bad", value: "split", more: `${split} ${issued}` };
  if (state === "unknown") {
    const few = "Too few nodes answer to tell who holds it now.";
    if (last === undefined) return { title, tone: "bad", value: "unknown", more: `${few} ${issued}` };
    const seen = `It was seen last ${duration(Math.max(1_000, last.oldMs + passedMs))} ago, with token ${last.token}.`;
    return { title: "Last known holder (old)", tone: "bad", value: printable(last.holder), more: `${few} ${seen}` };
  }
  // At least: since it was first seen here, or since the first write with its token.
  const own = (unlessTrouble(history)?.tokens ?? []).filter((writes) => writes.token === token);
  const heldMs = Math.max(seenForMs ?? 0, ...own.map(({ firstAt }) => at - firstAt));
  const held = heldMs === 0 ? "" : ` Held for at least ${duration(Math.max(1_000, heldMs + passedMs))}.`;
  const waits = waiting === 0 ? "" : ` ${plural(waiting, "waits", "wait")} for it.`;
  const more = `Ends in ${duration((endsInMs ?? 0) - passedMs)} unless it is renewed. Token ${token}.${held}${waits}`;
  return { title: "Held by", value: printable(holder ?? ""), more };
}

function fenceFact(fence: FenceView | Trouble | undefined, lock: LockView | undefined): Shown {
  const title = "Fence";
  if (fence === undefined) return { title, value: "none", more: "The store has never seen this resource." };
  if (isTrouble(fence)) return { title, tone: "bad", value: "not known", more: fence.trouble };
  const { token, rev, hasDocument, holder, updatedAt, moved } = fence;
  const revision = hasDocument ? `Revision ${count(rev)}` : rev === 0 ? "No document yet" : `Document deleted after revision ${count(rev)}`;
  const last = `${revision}, last by ${printable(holder ?? "nobody")} at ${timeOf(updatedAt)}.`;
  return { title, value: String(token), more: `${fenceWords(token, lock)} ${last} ${movedWords(moved)}` };
}

/** Also who took the lock away, and why. */
function movedWords(moved: FenceMoved | undefined): string {
  if (moved === undefined) return "";
  const { at, by, reason, previousToken, token } = moved;
  const from = previousToken === null ? "" : `from ${previousToken} `;
  return `Moved by hand ${from}to ${token} by ${printable(by)} at ${timeOf(at)}: “${printable(reason)}”.`;
}

function fenceWords(token: number, lock: LockView | undefined): string {
  if (lock?.state !== "held") return "Lower tokens are refused.";
  if (token === lock.token) return "The holder has written or sealed.";
  return token < lock.token ? "The holder has not written yet." : "It is above the holder's token: the holder is refused.";
}

function Answers({ nodes, passedMs }: { readonly nodes: readonly NodeAnswer[]; readonly passedMs: number }) {
  return (
    <Section title="What each node says">
      <div class="wide">
        <Table label="What each node says" heads={["Node", "Holder", "Ends in, token"]}>
          {nodes.map(({ node, holder, endsInMs, token, silent }) => (
            <tr key={node} class={silent === undefined ? "" : "over"}>
              <th scope="row">{node}</th>
              <td class="words" colSpan={silent === undefined ? 1 : 2}>
                {silent === undefined ? printable(holder ?? "free") : `no answer: ${printable(silent)}`}
              </td>
              {silent === undefined && (
                <td class="time">
                  {endsInMs === null ? "" : duration(endsInMs - passedMs)}
                  <span class="second token">{token !== null && <Token of={token} />}</span>
                </td>
              )}
            </tr>
          ))}
        </Table>
      </div>
    </Section>
  );
}

function History({ history }: Pick<ResourceView, "history">) {
  const rows = unlessTrouble(history)?.rows;
  return (
    <Section title="Accepted writes">
      {history === undefined && <p class="none">This gateway keeps no history (PALISADE_HISTORY=on).</p>}
      {history !== undefined && isTrouble(history) && <p class="fault">{history.trouble}</p>}
      {rows?.length === 0 && <p class="none">None.</p>}
      {rows !== undefined && rows.length > 0 && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard.
        <div class="wide tall" tabIndex={0}>
          <Table label="Accepted writes" heads={["At", "Revision, by", "Token"]}>
            {rows.map(({ rev, op, token, holder, at }) => (
              <tr key={rev}>
                <td class="at">{timeOf(at)}</td>
                <th scope="row">
                  {count(rev)} {op === "put" ? "" : op}
                  <span class="second">{printable(holder ?? "")}</span>
                </th>
                <td class="token">
                  <Token of={token} />
                </td>
              </tr>
            ))}
          </Table>
        </div>
      )}
    </Section>
  );
}
