// Asks for the reason before a lock is taken away, and names the holder. The order carries the
// holder and the token that were shown: if another one has it by then, nothing is done.
import { useEffect, useRef, useState } from "preact/hooks";
import type { LockView, NotReleased, Released } from "../src/page/messages.js";
import type { Session } from "./session.js";
import { printable } from "./text.js";

interface DialogParts {
  readonly session: Session;
  readonly resource: string;
  readonly lock: LockView;
  readonly onDone: () => void;
  readonly onClose: () => void;
}

type Outcome = Released | NotReleased | { readonly released: "failed"; readonly because: string };

export function ReleaseDialog({ session, resource, lock, onDone, onClose }: DialogParts) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [reason, setReason] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [outcome, setOutcome] = useState<Outcome>();
  useEffect(() => dialog.current?.showModal(), []);
  const holder = lock.holder === null ? "its holders" : printable(lock.holder);
  const release = async () => {
    setBusy(true);
    const order = { resource, reason: reason.trim(), holder: lock.holder, token: lock.token };
    const done = await session.post<Released | NotReleased>("force-release", order).catch((error: unknown): Outcome => {
      return { released: "failed", because: error instanceof Error ? error.message : String(error) };
    });
    setBusy(false);
    setOutcome(done);
    onDone();
  };
  return (
    <dialog ref={dialog} onClose={onClose} aria-labelledby="release-title">
      <h2 id="release-title">
        Take <span class="name">{printable(resource)}</span> away from <strong>{holder}</strong>?
      </h2>
      {outcome === undefined ? (
        <form
          method="dialog"
          onSubmit={(event) => {
            event.preventDefault();
            if (!isBusy) void release();
          }}
        >
          <p>
            It loses the lock now, and its next write is refused. Work that it has begun may stay half done. Others can take the lock at
            once.
          </p>
          <label for="reason">Why? It is kept with the change of the fence.</label>
          <textarea
            id="reason"
            rows={2}
            maxLength={1_000}
            required
            value={reason}
            onInput={({ currentTarget }) => setReason(currentTarget.value)}
          />
          <div class="choices">
            <button type="button" class="quiet" onClick={() => dialog.current?.close()}>
              Leave it
            </button>
            <button type="submit" class="danger filled" disabled={isBusy || reason.trim() === ""}>
              {isBusy ? "Taking it away…" : `Take it from ${holder}`}
            </button>
          </div>
        </form>
      ) : (
        <>
          <p role="alert" class={outcome.released === true && outcome.sealed === true ? "" : "fault"}>
            {outcomeWords(outcome)}
          </p>
          <div class="choices">
            <button type="button" class="primary" autofocus onClick={() => dialog.current?.close()}>
              Close
            </button>
          </div>
        </>
      )}
    </dialog>
  );
}

function outcomeWords(outcome: Outcome): string {
  if (outcome.released !== true) return outcome.because;
  const { removed, fence, sealed } = outcome;
  const gone = removed.length === 0 ? "Nobody held it any more." : `Taken from ${removed.map(printable).join(", ")}.`;
  if (sealed === true) return `${gone} Writes with a token below ${fence} are refused from now on.`;
  return `${gone} But the fence of the store was not raised: ${sealed}. The old holder is refused only once the store has seen token ${fence} or a later one.`;
}
