// The contract with the gateway that mounts the page: what the page reads of it, and the routes that
// it serves for the page. HTTP, credentials and scopes are the gateway's.
import type { ServerResponse } from "node:http";
import type { Fleet, Locker } from "@palisade/lock";
import type { z } from "zod";
import type { FenceView, HistoryView, RefusedWrite, ReleaseOrder, Trouble } from "./messages.js";

export type WatchedLock = Pick<Locker, "inspect"> & { readonly fleet: Pick<Fleet, "nodes" | "listHeld" | "forceRelease"> };

export interface WatchedGateway {
  /** Undefined where it does not know the lock's nodes. */
  readonly lock: WatchedLock | undefined;
  /** The last writes that it refused. */
  readonly refusals: {
    /** How many there were; the id of the last one. */
    readonly count: number;
    /** From then on none is missing. */
    readonly since: number;
    /** Newest first: at most so many of those after this id that are wanted. */
    newest(limit: number, after: number, isWanted: (row: RefusedWrite) => boolean): readonly RefusedWrite[];
  };
  /** Writes since its start, by what became of them. */
  writeTotals(): ReadonlyMap<string, number>;
  /** The checks of /ready that fail now. */
  failedChecks(): Promise<readonly { readonly name: string; readonly detail: string }[]>;
  /** Undefined where the store does not know the resource. */
  fence(resource: string): Promise<FenceView | Trouble | undefined>;
  /** Undefined where none is kept. */
  history(resource: string, limit: number): Promise<HistoryView | Trouble | undefined>;
  /** True when lower tokens are refused from now on; otherwise why they are not. */
  raiseFence(change: {
    readonly resource: string;
    readonly token: number;
    readonly reason: string;
    readonly by: string;
  }): Promise<true | string>;
  /** For its log: an order to take a lock away, and what came of it. */
  wasToBeTakenAway(order: ReleaseOrder & { readonly done: object | string }, caller: Caller): void;
}

/** Who asks. */
export interface Caller {
  readonly id: string;
  readonly requestId: string;
  /** With an empty name: whether it may with every resource. */
  may(action: "observe" | "admin", resource: string): boolean;
  /** Whether its credential is still there, with the same scopes. */
  isStillAllowed(): Promise<boolean>;
}

/** Whether the caller may see what is about this resource. */
export function visibleTo(caller: Caller): (about: { readonly resource: string }) => boolean {
  if (caller.may("observe", "")) return () => true;
  return ({ resource }) => caller.may("observe", resource);
}

/** Whoever asks needs an observe scope of any resource. */
export interface PageRoute<Input = unknown> {
  readonly method: "get" | "post";
  /** Below /page/. */
  readonly path: string;
  /** Of the query, or of the body. */
  readonly schema: z.ZodType<Input>;
  /** The resource for which the caller needs these scopes. */
  about?(input: Input): string;
  readonly needs?: readonly ("observe" | "admin")[];
  answer(input: Input, caller: Caller): PageAnswer | Promise<PageAnswer>;
}

export type PageAnswer =
  | { readonly json: object }
  /** Writes to the response, and ends it. */
  | { readonly stream: (response: ServerResponse) => void }
  | { readonly unavailable: string; readonly retryAfterSeconds: number };
