// Timeouts for stores and gateways of tests that are not about timeouts. The defaults are for
// operators: on a machine with ten times as much work as cores a row may be held for half a second,
// and a write that gave up there would look like one that the fence refused. A test about a limit
// sets that limit. Such a long wait for a row also outlasts Postgres's deadlock check, whose
// victims are run again: a test that promises no deadlock must check that none was run again.
export const longTimeouts = {
  connectTimeoutMs: 20_000,
  readTimeoutMs: 20_000,
  writeTimeoutMs: 20_000,
  batchLockWaitMs: 10_000,
  maxWaitMs: 20_000,
} as const;

/** The same for the program, whose other waits are shares of this one. */
export const longTimeoutVariables = { PALISADE_WRITE_TIMEOUT_MS: "50000" } as const;
