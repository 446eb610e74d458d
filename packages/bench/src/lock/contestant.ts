// What a library has to offer to be measured. All libraries get the same servers and the same ttl.

/** Acquires and releases on N independent Redis masters. */
export interface Contestant {
  readonly name: string;
  /** Whether its leases carry a fencing token. */
  readonly tokens: "none" | "yes";
  acquireAndRelease(resource: string): Promise<void>;
  close(): Promise<void>;
}

/** For measurements in which the lock is held when it is asked for: waits as its library does. */
export interface Waiter {
  readonly name: string;
  /** Returns the function that releases. */
  acquire(resource: string): Promise<() => Promise<unknown>>;
  close(): Promise<void>;
}

/** Connects to the nodes. */
export type Open<T> = (urls: readonly string[]) => Promise<T>;

export const TTL_MS = 10_000;
