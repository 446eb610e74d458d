// What the parts of the page share: the session, a clock that ticks, and the address after the #.
import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Known, Session } from "./session.js";

export function useKnown(session: Session): Known {
  const [known, setKnown] = useState(session.known);
  useEffect(() => {
    setKnown(session.known);
    return session.onChange(() => setKnown(session.known));
  }, [session]);
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

function resourceIn(hash: string): string | undefined {
  if (!hash.startsWith(RESOURCE)) return undefined;
  try {
    return decodeURIComponent(hash.slice(RESOURCE.length)) || undefined;
  } catch {
    return undefined;
  }
}

/** The resource whose page is open. */
export function useResource(): string | undefined {
  const [resource, setResource] = useState(resourceIn(location.hash));
  useEffect(() => {
    const changed = () => setResource(resourceIn(location.hash));
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return resource;
}

/** An element and its width in pixels. */
export function useWidth(): readonly [RefObject<HTMLDivElement | null>, number] {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(600);
  useEffect(() => {
    const watch = new ResizeObserver(([entry]) => setWidth(entry?.contentRect.width ?? 600));
    if (box.current !== null) watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  return [box, width];
}
