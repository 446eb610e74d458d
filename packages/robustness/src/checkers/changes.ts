// G8: whoever reads the stream of changes is told each stored write once, those of a resource in
// the order of their revisions, and nothing else.
import type { Entry, History } from "../history/history.js";
import { groupedBy, type Violation } from "../history/records.js";

export function brokenStreams({ streams, entries }: Pick<History, "streams" | "entries">): Violation[] {
  return streams.flatMap(({ reader, prefix, changes, failure }) => {
    const stored = new Set(entries.filter(({ resource, op }) => resource.startsWith(prefix) && op !== "guarded").map(nameOf));
    const read = new Set(changes.map(nameOf));
    const wrong = (resource: string, what: string): Violation => ({ promise: "G8", resource, what: `${reader}: ${what}` });
    return [
      ...(failure === undefined ? [] : [wrong(prefix, `the stream ended: ${failure}`)]),
      ...[...stored].filter((name) => !read.has(name)).map((name) => wrong(prefix, `${name} is stored and was not told`)),
      ...[...read].filter((name) => !stored.has(name)).map((name) => wrong(prefix, `${name} was told and is not stored`)),
      ...[...groupedBy(changes, ({ resource }) => resource)].flatMap(([resource, own]) =>
        own.flatMap((change, i) => {
          const before = own[i - 1];
          return before === undefined || before.rev < change.rev ? [] : [wrong(resource, `${nameOf(change)} came after ${nameOf(before)}`)];
        }),
      ),
    ];
  });
}

function nameOf({ resource, rev, token }: Entry): string {
  return `revision ${rev} of ${resource} with token ${token}`;
}
