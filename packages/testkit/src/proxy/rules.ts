// What the proxy does to traffic now, as plain data, and the count of what it has done so far.

/** Requests flow from the client to the server, replies the other way. */
export type Direction = "requests" | "replies";

/** pass on · discard in silence · keep, in order, until told to deliver */
export type Gate = "pass" | "drop" | "hold";

/** Each connection, old or new, ends after this many more bytes in this direction. */
export interface CutRule {
  readonly afterBytes: number;
}

interface DirectionRules {
  gate: Gate;
  cut: CutRule | undefined;
}

export interface Rules {
  readonly requests: DirectionRules;
  readonly replies: DirectionRules;
  /** Every chunk waits this long in the proxy, in both directions. */
  delayMs: number;
  /** New connections get no way to the server, and no answer. */
  newConnectionsHang: boolean;
  /** New connections are refused by the operating system. */
  refusing: boolean;
}

export interface DirectionTraffic {
  passedBytes: number;
  droppedBytes: number;
  /** In the proxy right now: held, delayed, or waiting for a slow receiver. */
  waitingBytes: number;
}

export interface Traffic {
  readonly requests: DirectionTraffic;
  readonly replies: DirectionTraffic;
}

export function transparent(): Rules {
  return {
    requests: { gate: "pass", cut: undefined },
    replies: { gate: "pass", cut: undefined },
    delayMs: 0,
    newConnectionsHang: false,
    refusing: false,
  };
}

export function noTraffic(): Traffic {
  return {
    requests: { passedBytes: 0, droppedBytes: 0, waitingBytes: 0 },
    replies: { passedBytes: 0, droppedBytes: 0, waitingBytes: 0 },
  };
}
