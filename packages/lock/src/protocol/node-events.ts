// What the node layer reports without being asked: facts about one node or about the fleet's admission. Reporting never changes an answer, and a listener that
// throws is the caller's business, so `onEvent` must not throw.

/** How a node's memory came to be believed. */
export type AdmissionWay =
  /** It kept everything: append-only log, fsync always. */
  | "durable"
  /** Its memory was rebuilt from the floors of enough admitted nodes, after every lease it may have forgotten had run out. */
  | "rebuilt"
  /** A new fleet, or too few admitted nodes left to prove the highest token: the floor is the Unix time in milliseconds. */
  | "bootstrap";

/** What happened to a node, or to the fleet; published on the channel `palisade:lock:node`. */
export type NodeEvent =
  | { readonly kind: "connected"; readonly node: string; readonly address: string }
  | { readonly kind: "disconnected"; readonly node: string; readonly address: string; readonly cause: string }
  | { readonly kind: "quarantined"; readonly node: string; readonly readyInMs?: number }
  | { readonly kind: "admitted"; readonly node: string; readonly way: AdmissionWay; readonly floor: number }
  /** Nothing can be done for these nodes now; tried again when another node comes back, and every second or so. */
  | { readonly kind: "admission_blocked"; readonly nodes: readonly string[]; readonly reason: string }
  | { readonly kind: "fleet_refused"; readonly reason: string }
  /** A release whose outcome is unknown was given up (too many, or the key has run out anyway). */
  | { readonly kind: "release_dropped"; readonly node: string; readonly count: number; readonly reason: string };
