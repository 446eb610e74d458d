// One resource: who holds it, what stands in the store, what was written and refused, and taking the
// lock away.
import { useCallback, useEffect, useState } from "preact/hooks";
import type { FenceView, HistoryRow, LockView, NodeAnswer, ResourceView, Trouble } from "../src/page/messages.js";
import { useNow } from "./hooks.js";
import { RefusalTable } from "./refusals.js";
import { ReleaseDialog } from "./release-dialog.js";
import type { Session } from "./session.js";
import { count, isTrouble, printable, timeOf, wholeDuration } from "./text.js";
import { Timeline } from "./timeline.js";

const LOOK_EVERY_MS = 1_000;

interface Look {
  readonly view: ResourceView;
  readonly at: number;
}

export function ResourcePage({ session, resource }: { readonly session: Session; readonly resource: string }) {
  const [look, setLook] = useState<Look>();
  const [fault, setFault] = useState("");
  const [asked, setAsked] = useState<LockView>();
  const now = useNow(500);
  const lookAgain = useCallback(async () => {
    try {
      const view = await session.get<ResourceView>(`resource?${new URLSearchParams({ name: resource })}`);
      setLook({ view, at: performance.now() });
      setFault("");
    } catch (error) {
      setFault(error instanceof Error ? error.message : String(error));
    }
  }, [session, resource]);
  useEffect(() => {
    let timer = 0;
    let isLeft = false;
    const again = async () => {
      await lookAgain();
      if (!isLeft) timer = setTimeout(again, LOOK_EVERY_MS);
    };
    void again();
    return () => {
      isLeft = true;
      clearTimeout(timer);
    };
  }, [lookAgain]);
  const view = look?.view;
  const passedMs = look === undefined ? 0 : now - look.at;
  const lock = view?.lock;
  const known = lock !== undefined && !isTrouble(lock) ? lock : undefined;
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
            <LockFacts lock={lock} heldForMs={heldForMs(view, passedMs)} passedMs={passedMs} />
            <FenceFacts fence={view.fence} lock={known} />
          </section>
          {view.mayRelease && known !== undefined && known.state !== "free" && (
            <button type="button" class="danger" onClick={() => setAsked(known)}>
              Take the lock away…
            </button>
          )}
          <Timeline view={view} passedMs={passedMs} />
          {known !== undefined && <Answers nodes={known.nodes} passedMs={passedMs} />}
          <History history={view.history} />
          <section aria-labelledby="own-refusals">
            <h2 id="own-refusals">Refused writes</h2>
            <div class="wide">
              <RefusalTable rows={view.refusals} of="one" label="Refused writes of this resource" />
            </div>
            {view.refusals.length === 0 && <p class="none">None that this gateway remembers.</p>}
          </section>
        </>
      )}
      {asked !== undefined && (
        <ReleaseDialog
          session={session}
          resource={resource}
          lock={asked}
          onDone={() => void lookAgain()}
          onClose={() => setAsked(undefined)}
        />
      )}
    </div>
  );
}

/** At least: since it was first seen here, or since the first write with its token. */
function heldForMs({ at, lock, history }: ResourceView, passedMs: number): number | undefined {
  if (lock === undefined || isTrouble(lock) || lock.state !== "held") return undefined;
  const own = history === undefined || isTrouble(history) ? [] : history.filter(({ token }) => token === lock.token);
  const since = Math.max(lock.seenForMs ?? 0, ...own.map((row) => at - row.at));
  return since === 0 ? undefined : since + passedMs;
}

interface LockParts {
  readonly lock: ResourceView["lock"];
  readonly heldForMs: number | undefined;
  readonly passedMs: number;
}

function LockFacts({ lock, heldForMs: held, passedMs }: LockParts) {
  if (lock === undefined) return <Fact title="Lock" tone="" value="not known here" more="This gateway does not know the lock's nodes." />;
  if (isTrouble(lock)) return <Fact title="Lock" tone="bad" value="not known" more={printable(lock.trouble)} />;
  const { state, holder, token, endsInMs } = lock;
  const issued = token === 0 ? "" : `Highest token ${token}.`;
  if (state === "free") return <Fact title="Lock" tone="" value="free" more={issued} />;
  if (state === "split")
    return (
      <Fact
        title="Lock"
        tone="bad"
        value="split"
        more={`No holder has a quorum, and none can get one before these leases end. ${issued}`}
      />
    );
  if (state === "unknown") return <Fact title="Lock" tone="bad" value="unknown" more={`Too few nodes answered to tell. ${issued}`} />;
  const since = held === undefined ? "" : ` Held for at least ${wholeDuration(Math.max(1_000, held))}.`;
  const left = wholeDuration((endsInMs ?? 0) - passedMs);
  return (
    <Fact
      title="Held by"
      tone="held"
      value={printable(holder ?? "")}
      more={`Ends in ${left} unless it is renewed. Token ${token}.${since}`}
    />
  );
}

function FenceFacts({ fence, lock }: { readonly fence: ResourceView["fence"]; readonly lock: LockView | undefined }) {
  if (fence === undefined) return <Fact title="Fence" tone="" value="none" more="The store has never seen this resource." />;
  if (isTrouble(fence)) return <Fact title="Fence" tone="bad" value="not known" more={fence.trouble} />;
  return <Fact title="Fence" tone="" value={String(fence.token)} more={`${fenceWords(fence, lock)} ${revisionWords(fence)}`} />;
}

function fenceWords(fence: FenceView, lock: LockView | undefined): string {
  if (lock?.state !== "held") return "Lower tokens are refused.";
  if (fence.token === lock.token) return "The holder has written or sealed.";
  return fence.token < lock.token ? "The holder has not written yet." : "It is above the holder's token: the holder is refused.";
}

function revisionWords({ rev, hasDocument, holder, updatedAt }: FenceView): string {
  const revision = hasDocument ? `Revision ${count(rev)}` : rev === 0 ? "No document yet" : `Document deleted after revision ${count(rev)}`;
  return `${revision}, last by ${printable(holder ?? "nobody")} at ${timeOf(updatedAt)}.`;
}

function Fact({ title, tone, value, more }: Readonly<Record<"title" | "tone" | "value" | "more", string>>) {
  return (
    <div class={`fact ${tone}`}>
      <h2>{title}</h2>
      <p class="value">{value}</p>
      <p>{more}</p>
    </div>
  );
}

function Answers({ nodes, passedMs }: { readonly nodes: readonly NodeAnswer[]; readonly passedMs: number }) {
  return (
    <section aria-labelledby="answers">
      <h2 id="answers">What each node says</h2>
      <div class="wide">
        <table aria-labelledby="answers">
          <thead>
            <tr>
              <th scope="col">Node</th>
              <th scope="col">Holder</th>
              <th scope="col" class="token">
                Ends in, token
              </th>
            </tr>
          </thead>
          <tbody>
            {nodes.map(({ node, holder, endsInMs, token, silent }) => (
              <tr key={node} class={silent === undefined ? "" : "over"}>
                <th scope="row">{node}</th>
                {silent === undefined ? (
                  <>
                    <td class="words">{holder === null ? "free" : printable(holder)}</td>
                    <td class="time">
                      {endsInMs === null ? "" : wholeDuration(endsInMs - passedMs)}
                      <span class="second token">{token ?? ""}</span>
                    </td>
                  </>
                ) : (
                  <td class="words" colSpan={2}>
                    no answer: {printable(silent)}
                  </td>
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function History({ history }: { readonly history: readonly HistoryRow[] | Trouble | undefined }) {
  return (
    <section aria-labelledby="history">
      <h2 id="history">Accepted writes</h2>
      {history === undefined ? (
        <p class="none">This gateway keeps no history (PALISADE_HISTORY=on).</p>
      ) : isTrouble(history) ? (
        <p class="fault">{history.trouble}</p>
      ) : history.length === 0 ? (
        <p class="none">None.</p>
      ) : (
        <div class="wide">
          <table aria-labelledby="history">
            <thead>
              <tr>
                <th scope="col">At</th>
                <th scope="col">Revision, by</th>
                <th scope="col" class="token">
                  Token
                </th>
              </tr>
            </thead>
            <tbody>
              {history.map(({ rev, op, token, holder, at }) => (
                <tr key={rev}>
                  <td class="at">{timeOf(at)}</td>
                  <th scope="row">
                    {count(rev)} {op === "put" ? "" : op}
                    <span class="second">{printable(holder ?? "")}</span>
                  </th>
                  <td class="token">{token}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}
