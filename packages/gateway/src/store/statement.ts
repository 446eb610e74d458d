// What is sent to the database on a connection that writes, and what comes back.
import type { Failure } from "../fence/failure.js";

export interface BoundStatement {
  /** Prepared under it, once per connection; empty: not prepared. */
  readonly name: string;
  readonly text: string;
  readonly values: readonly (string | Buffer | null)[];
}

export type Row = readonly unknown[];
export type Reply = { readonly rows: readonly Row[] } | { readonly failure: Failure };
