// Asks for the reason before a lock is taken away, and names the holder. The order carries the token
// that was shown: if another lease has it by then, nothing is done.
import { useEffect, useRef, useState } from "preact/hooks";
import type { LockView, NotReleased, Released, ReleaseOrder } from "../src/messages.js";
import { session } from "./session.js";
import { printable } from "./text.js";

interface Question {
  readonly resource: string;
  readonly lock: LockView;
  readonly onDone: () => void;
  readonly onClose: () => void;
}

export function ReleaseDialog({ resource, lock: { holder, token }, onDone, onClose }: Question) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [reason, setReason] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [outcome, setOutcome] = useState<{ readonly words: string; readonly isFault: boolean }>();
  useEffect(() => dialog.current?.showModal(), []);
  const close = () => dialog.current?.close();
  const holders = holder === null ? "its holders" : printable(holder);
  const release = async () => {
    setBusy(true);
    const order: ReleaseOrder = { resource, reason: reason.trim(), token };
    const asked = session.ask<Released | NotReleased>("force-release", { method: "POST", body: JSON.stringify(order) });
    setOutcome(await asked.then(outcomeOf, (error: Error) => ({ words: error.message, isFault: true })));
    onDone();
  };
  return (
    <dialog ref={dialog} onClose={onClose} aria-labelledby="release-title">
      <h2 id="release-title">
        Take <span class="name">{printable(resource)}</span> away from <strong>{holders}</strong>?
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
            <button type="button" class="quiet" onClick={close}>
              Leave it
            </button>
            <button type="submit" class="act bad filled" disabled={isBusy || reason.trim() === ""}>
              {isBusy ? "Taking it away…" : `Take it from ${holders}`}
            </button>
          </div>
        </form>
      ) : (
        <>
          <p role="alert" class={outcome.isFault ? "fault" : ""}>
            {outcome.words}
          </p>
          <div class="choices">
            <button type="button" class="act good filled" autofocus onClick={close}>
              Close
            </button>
          </div>
        </>
      )}
    </dialog>
  );
}

function outcomeOf(done: Released | NotReleased): { readonly words: string; readonly isFault: boolean } {
  if (!done.released) return { words: done.because, isFault: true };
  const { removed, fence, sealed } = done;
  const gone = removed.length === 0 ? "Nobody held it any more." : `Taken from ${removed.map(printable).join(", ")}.`;
  if (sealed === true) return { words: `${gone} Writes with a token below ${fence} are refused from now on.`, isFault: false };
  const until = `The old holder is refused only once the store has seen token ${fence} or a later one.`;
  return { words: `${gone} But the fence of the store was not raised: ${sealed}. ${until}`, isFault: true };
}
