// What the views are made of: what is known, a clock that ticks, the address after the #, a token, a
// section and a table.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { type Known, session } from "./session.js";

export function useKnown(): Known {
  const [known, setKnown] = useState(session.known);
  useEffect(() => {
    setKnown(session.known);
    return session.onChange(() => setKnown(session.known));
  }, []);
  return known;
}

/** The time on the clock of `performance`, again and again. */
export function useNow(everyMs: number): number {
  const [now, setNow] = useState(performance.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(performance.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

const RESOURCE = "#/resource/";

export function resourceLink(resource: string): string {
  return RESOURCE + encodeURIComponent(resource);
}

function openResource(): string | undefined {
  try {
    return location.hash.startsWith(RESOURCE) ? decodeURIComponent(location.hash.slice(RESOURCE.length)) || undefined : undefined;
  } catch {
    return undefined;
  }
}

/** The resource whose page is open. */
export function useResource(): string | undefined {
  const [resource, setResource] = useState(openResource);
  useEffect(() => {
    const changed = () => setResource(openResource());
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return resource;
}

/** Where there is little room, style.css leaves its last six digits, which tell one from the next. */
export function Token({ of }: { readonly of: number }) {
  const text = String(of);
  return (
    <span class="digits" title={text}>
      <span class="lead">{text.slice(0, -6)}</span>
      {text.slice(-6)}
    </span>
  );
}

interface Titled {
  readonly title: string;
  readonly class?: string;
  readonly children: ComponentChildren;
}

export function Section({ title, class: name, children }: Titled) {
  return (
    <section class={name} aria-label={title}>
      <h2>{title}</h2>
      {children}
    </section>
  );
}

interface Rows {
  readonly label: string;
  /** Of the columns; the last one is for tokens. */
  readonly heads: readonly string[];
  readonly children: ComponentChildren;
}

export function Table({ label, heads, children }: Rows) {
  return (
    <table aria-label={label}>
      <thead>
        <tr>
          {heads.map((head, at) => (
            <th key={head} scope="col" class={at === heads.length - 1 ? "token" : ""}>
              {head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  );
}
