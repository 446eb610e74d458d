// Who takes part in the rows of the lock: each library, in each configuration, by a short key.
import { floor, type Library, palisade, type Settings } from "./library.js";
import { peers } from "./peers.js";

interface Entrant {
  readonly name: string;
  readonly library: Library;
  /** Beside the usual ones. */
  readonly settings: Partial<Settings>;
}

/** ioredis' own batching, which a team that measures would switch on. */
const pipelined = { autoPipelining: true } as const;
const FAST_RETRY_MS = 10;

const plain = { floor, palisade, before: palisade, ...peers } as const;

const entrants: Readonly<Record<string, Entrant>> = {
  ...Object.fromEntries(Object.entries(plain).map(([key, library]) => [key, { name: library.name, library, settings: {} }])),
  ...Object.fromEntries(
    Object.entries({ floor, ...peers }).flatMap(([key, library]) => [
      [`${key}+`, { name: `${library.name}, auto-pipelining`, library, settings: pipelined }],
      [`${key}!`, { name: `${library.name}, retry ${FAST_RETRY_MS} ms`, library, settings: { ...pipelined, retryMs: FAST_RETRY_MS } }],
    ]),
  ),
  before: { name: "@palisade/lock beside it", library: palisade, settings: {} },
};

export function byKey(key: string): Entrant {
  const found = entrants[key];
  if (found === undefined) throw new RangeError(`nothing to be measured is called ${key}`);
  return found;
}
