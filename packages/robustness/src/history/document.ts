// The documents of a run: a counter, the name of the write that made it, and a chain over all names
// so far. From the order of the writes follows what a document must be; one lost or doubled write
// shows in it for ever.
import { createHash } from "node:crypto";

export interface Document {
  readonly n: number;
  readonly by: string;
  readonly chain: string;
}

/** What a read showed: revision 0 and no document where nothing was ever written. */
export interface Seen {
  readonly rev: number;
  readonly document: Document | null;
}

/** The document after one more write. */
export function successor(before: Document | null, by: string): Document {
  const chain = createHash("sha1")
    .update(`${before?.chain ?? ""}/${by}`)
    .digest("base64url")
    .slice(0, 16);
  return { n: (before?.n ?? 0) + 1, by, chain };
}
