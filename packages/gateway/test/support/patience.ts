// Limits for stores and gateways of tests that are not about them. The defaults are for operators: on a machine with ten times as much work as cores a row may well be
// held for half a second, and a write that gave up there would look like one that the fence refused. A test about a limit sets that limit.
// So long a wait for a row also outlasts Postgres's look for deadlocks, which are then run again: who promises that there are none must ask whether one was.
export const patience = {
  connectTimeoutMs: 20_000,
  readTimeoutMs: 20_000,
  writeTimeoutMs: 20_000,
  lockWaitMs: 10_000,
  maxWaitMs: 20_000,
} as const;

/** The same for the program. */
export const patientEnvironment = {
  PALISADE_CONNECT_TIMEOUT_MS: String(patience.connectTimeoutMs),
  PALISADE_READ_TIMEOUT_MS: String(patience.readTimeoutMs),
  PALISADE_WRITE_TIMEOUT_MS: String(patience.writeTimeoutMs),
  PALISADE_LOCK_WAIT_MS: String(patience.lockWaitMs),
  PALISADE_MAX_WAIT_MS: String(patience.maxWaitMs),
} as const;
