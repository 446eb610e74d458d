// A transaction on tables that Citus distributes. Until COMMIT is sent every failure is certainly
// not applied; after that, every failure is unknown: the workers have committed before the
// coordinator answers.
import type { Failure } from "../fence/failure.js";
import type { BoundStatement, Reply, Row } from "./statement.js";

/** Rows to commit with, or undefined to undo all. A statement that fails ends the work. */
export type Work = (run: (statement: BoundStatement) => Promise<readonly Row[]>) => Promise<readonly Row[] | undefined>;

// While it commits, Citus lowers what the workers say to the level of debugging, the warning that a
// wait for a standby was cancelled included.
const COMMIT = "select pg_catalog.set_config('client_min_messages', 'debug1', true); commit";

class StatementError extends Error {
  constructor(readonly failure: Failure) {
    super(failure.error.message, { cause: failure.error });
  }
}

interface Transacting {
  readonly send: (statement: BoundStatement) => Promise<Reply>;
  /** Sent first. */
  readonly begin: readonly BoundStatement[];
  /** The session is in a state that is not known. */
  readonly lose: () => void;
}

export async function inTransaction({ send, begin, lose }: Transacting, work: Work): Promise<Reply> {
  const run = async (statement: BoundStatement): Promise<readonly Row[]> => {
    const reply = await send(statement);
    if ("failure" in reply) throw new StatementError(reply.failure);
    return reply.rows;
  };
  let rows: readonly Row[] | undefined;
  let failed: Failure | undefined;
  try {
    for (const statement of begin) await run(statement);
    rows = await work(run);
  } catch (error) {
    if (!(error instanceof StatementError)) throw error;
    failed = notCommitted(error.failure);
    if (error.failure.kind === "unknown" && error.failure.reason === "timed_out") {
      lose(); // The statement may still run, and the answer to the next would be its own.
      return { failure: failed };
    }
  }
  if (rows === undefined) {
    const undone = await send(unnamed("rollback"));
    if ("failure" in undone) lose();
    return failed === undefined ? { rows: [] } : { failure: failed };
  }
  const committed = await send(unnamed(COMMIT));
  if ("rows" in committed) return { rows };
  const { failure } = committed;
  if (failure.kind === "unknown") return committed;
  return { failure: { kind: "unknown", reason: "connection_lost", error: failure.error } };
}

function notCommitted(failure: Failure): Failure {
  return failure.kind === "unknown" ? { kind: "unavailable", reason: "unreachable", error: failure.error } : failure;
}

export function unnamed(text: string, values: readonly (string | null)[] = []): BoundStatement {
  return { name: "", text, values };
}
