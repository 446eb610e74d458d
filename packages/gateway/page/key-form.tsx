// Asks for the key. It goes to the gateway in a header, and is kept in this tab only.
import { useRef } from "preact/hooks";
import type { Known, Session } from "./session.js";

export function KeyForm({ session, known }: { readonly session: Session; readonly known: Known }) {
  const input = useRef<HTMLInputElement>(null);
  const isRefused = known.status === "refused";
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
          {known.detail}
        </p>
      )}
      <button type="submit" class="primary">
        Open
      </button>
    </form>
  );
}
