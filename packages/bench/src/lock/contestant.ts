// Somebody who can take and give back a lock on N independent Redis masters. Every contestant of a comparison gets the same servers and the same lifetimes.

export interface Contestant {
  readonly name: string;
  /** Gives a token? Whether the lease it gives can be fenced. */
  readonly tokens: "none" | "yes";
  /** Takes the lock and gives it back. */
  cycle(resource: string): Promise<void>;
  close(): Promise<void>;
}

/** Takes the lock with its library's own patience and answers how to give it back: for measurements in which somebody waits. */
export interface Waiter {
  readonly name: string;
  take(resource: string): Promise<() => Promise<unknown>>;
  close(): Promise<void>;
}

export type Enter<T> = (urls: readonly string[]) => Promise<T>;

export const ttlMs = 10_000;
