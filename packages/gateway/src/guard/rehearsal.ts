// Runs every form of the statement once with zero rows: whether this engine can run them is known
// before the first write, and nothing is written.
import type { Lanes } from "../store/lanes.js";
import { columnsOf, parametersOf, type Statement } from "./fenced-statement.js";

export interface RehearsalParts {
  readonly lanes: Lanes;
  readonly statements: readonly Statement[];
}

export class Rehearsal {
  readonly #parts: RehearsalParts;
  #hasPassed = false;

  constructor(parts: RehearsalParts) {
    this.#parts = parts;
  }

  /** Undefined when every statement has run once; otherwise why one did not. */
  async fault(): Promise<string | undefined> {
    if (this.#hasPassed) return undefined;
    const { lanes, statements } = this.#parts;
    const outcome = await lanes.use([], async (connection) => {
      for (const statement of statements) {
        const reply = await connection.run({ ...statement, values: valuesFor(statement) });
        if ("failure" in reply) return { kind: "failed", message: `${statement.name}: ${reply.failure.error.message}` } as const;
      }
      return { kind: "passed" } as const;
    });
    if (outcome.kind === "unavailable") return `no connection was free (${outcome.reason})`;
    if (outcome.kind === "failed") return outcome.message;
    this.#hasPassed = true;
    return undefined;
  }
}

/**
 * Nothing to write: no rows, or a write without a name and a token. The keys of a batch are arrays;
 * a single write and a transaction have one key.
 */
function valuesFor({ name, text }: Statement): (string | Buffer | null)[] {
  if (text.includes("$10::jsonb[]")) return parametersOf([]);
  const first = text.includes("$7::jsonb[]") ? columnsOf([]) : Array.from({ length: 8 }, () => null);
  if (!text.includes("$10")) return first;
  return text.includes("$10::text[]") ? [...first, "{}", "{}"] : [...first, name, name];
}
