// What a run of the whole system asks of its store.
import type { FaultProxy } from "@palisade/testkit";
import type pg from "pg";

export interface StoreLink {
  readonly url: string;
  readonly proxy: FaultProxy;
}

export interface SystemStore {
  /** One client's link to it. */
  link(): Promise<StoreLink>;
  /** A gateway's, where that is another one. */
  linkOfGateway?(index: number): Promise<StoreLink>;
  /** For the harness, past all links. */
  query<Row extends pg.QueryResultRow>(text: string): Promise<Row[]>;
}
