// The frame: who is connected and how, the key, and either the overview or one resource.
import { useEffect, useRef } from "preact/hooks";
import { useKnown, useNow, useResource } from "./hooks.js";
import { KeyForm } from "./key-form.js";
import { Overview } from "./overview.js";
import { ResourcePage } from "./resource-page.js";
import type { Known, Session } from "./session.js";
import { printable, timeOf, wholeDuration } from "./text.js";

export function App({ session }: { readonly session: Session }) {
  const known = useKnown(session);
  const resource = useResource();
  const main = useRef<HTMLElement>(null);
  const isOpen = known.hello !== undefined;
  const before = useRef(resource);
  // Who goes from one view to the other reads on at its beginning.
  useEffect(() => {
    document.title = resource === undefined ? "Palisade" : `${printable(resource)} · Palisade`;
    if (before.current !== resource) main.current?.focus();
    before.current = resource;
  }, [resource]);
  return (
    <>
      <header class="bar">
        <a class="brand" href="#/">
          <svg class="mark" viewBox="0 0 32 32" aria-hidden="true">
            <path d="M4 12 8 6l4 6v16H4zM12 12l4-6 4 6v16h-8zM20 12l4-6 4 6v16h-8z" />
          </svg>
          Palisade
        </a>
        <Connection known={known} />
        {session.hasKey && (
          <button type="button" class="quiet" onClick={() => session.use("")}>
            Forget key
          </button>
        )}
      </header>
      <main ref={main} tabIndex={-1}>
        {known.status === "no key" || known.status === "refused" ? (
          <KeyForm session={session} known={known} />
        ) : !isOpen ? (
          <p class="waiting" role="status">
            {known.detail === "" ? "Connecting to the gateway…" : known.detail}
          </p>
        ) : resource === undefined ? (
          <Overview session={session} known={known} />
        ) : (
          <ResourcePage key={resource} session={session} resource={resource} />
        )}
      </main>
    </>
  );
}

function Connection({ known: { status, hello, state, stateAt } }: { readonly known: Known }) {
  const now = useNow(1_000);
  if (hello === undefined) return <span class="connection" />;
  const isLive = status === "live";
  return (
    <span class={`connection ${isLive ? "live" : "lost"}`}>
      <span class="dot" aria-hidden="true" />
      <span role="status">{isLive ? "Live" : "Connection lost"}</span>
      {!isLive && <span aria-hidden="true">{wholeDuration(Math.max(1_000, now - stateAt))} ago</span>}
      {isLive && state !== undefined && <time aria-hidden="true">{timeOf(state.at)}</time>}
      <span class="principal" title="The credential in use">
        {printable(hello.principal)}
      </span>
    </span>
  );
}
