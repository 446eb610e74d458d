// The frame: who is connected and how, the key, and either the overview or one resource.
import { render } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useKnown, useNow, useResource } from "./elements.js";
import { Overview } from "./overview.js";
import { ResourcePage } from "./resource.js";
import { type Known, session } from "./session.js";
import { duration, printable, timeOf } from "./text.js";

function App() {
  const known = useKnown();
  const resource = useResource();
  const main = useRef<HTMLElement>(null);
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
          <KeyForm fault={known.detail} isRefused={known.status === "refused"} />
        ) : known.hello === undefined ? (
          <p class="waiting" role="status">
            {known.detail || "Connecting to the gateway…"}
          </p>
        ) : resource === undefined ? (
          <Overview known={known} />
        ) : (
          <ResourcePage key={resource} resource={resource} />
        )}
      </main>
    </>
  );
}

function Connection({ known: { status, hello, state, stateAt } }: { readonly known: Known }) {
  const now = useNow(1_000);
  const isLive = status === "live";
  if (hello === undefined) return <span class="connection" />;
  return (
    <span class={`connection ${isLive ? "live good" : "lost bad"}`}>
      <span class="dot" aria-hidden="true" />
      <span role="status">{isLive ? "Live" : "Connection lost"}</span>
      {!isLive && <span aria-hidden="true">{duration(Math.max(1_000, now - stateAt))} ago</span>}
      {isLive && state !== undefined && <time aria-hidden="true">{timeOf(state.at)}</time>}
      <span class="principal" title="The credential in use">
        {printable(hello.principal)}
      </span>
    </span>
  );
}

function KeyForm({ fault, isRefused }: { readonly fault: string; readonly isRefused: boolean }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <form
      class="key"
      onSubmit={(event) => {
        event.preventDefault();
        session.use(input.current?.value ?? "");
      }}
    >
      <h1>Operator's page</h1>
      <p>Enter an API key or JWT with an observe scope. This tab keeps it until it is closed.</p>
      <label for="key">Key</label>
      <input
        id="key"
        ref={input}
        type="password"
        autocomplete="current-password"
        autofocus
        required
        aria-invalid={isRefused}
        aria-describedby={isRefused ? "key-fault" : undefined}
      />
      {isRefused && (
        <p id="key-fault" class="fault" role="alert">
          {fault}
        </p>
      )}
      <button type="submit" class="act good filled">
        Open
      </button>
    </form>
  );
}

const root = document.getElementById("app");
if (root !== null) render(<App />, root);
session.connect();
