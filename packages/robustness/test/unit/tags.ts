// Whether a picture is well-formed.

/** The tags that are still open at the end, or that were closed out of order. */
export function parseTags(svg: string): string[] {
  const open: string[] = [];
  for (const [, end, name = "", self] of svg.matchAll(/<(\/?)([a-z]+)[^>]*?(\/?)>/g)) {
    if (self === "/") continue;
    if (end === "") open.push(name);
    else if (open.pop() !== name) return [`</${name}>`];
  }
  return open;
}
