// How long a change of members or fleets is tried, and how its caller hears what it waits for.

/** What a change waits for. */
export interface ChangeWaiting {
  /** In words. */
  readonly why: string;
  /** For how long, in milliseconds, where that is leases to be over; absent: not known. */
  readonly waitMs?: number;
}

/** How long a change is tried. */
export interface ChangeLimits {
  /**
   * How long to try, in milliseconds. By default until nothing has come of it for 120 000, and on
   * top for as long as leases last that a change has to outwait.
   */
  readonly waitMs?: number | undefined;
  /** Called each time that it begins to wait for something else. */
  readonly onWait?: ((waiting: ChangeWaiting) => void) | undefined;
}
