// The rules of the protocol in a world: all hold, except in a control, which switches one off from
// outside, in the text of a script, an answer, the policy or the callers. The lock's own code is
// the same.
import type { Policy } from "#lock/options/policy.js";
import type { Reply } from "../server/commands.js";
import type { Memory } from "../server/memory.js";
import type { Executed, ScriptName, SimServer } from "../server/sim-server.js";

/** How one process is configured. */
export interface Configured {
  readonly nodes: readonly string[];
  readonly ttlMs: number;
}

export interface Rules {
  readonly policy: (policy: Policy) => Policy;
  /** From when on a caller counts its lease. */
  readonly countsFrom: "first byte" | "last reply";
  /**
   * `two`: processes that begin later have another server in the place of the last node in their
   * lists, as in a rolling replacement, or by a typing error.
   */
  readonly lists?: "two";
  /** Changes the text of a script. */
  readonly edit?: (name: ScriptName | undefined, text: string) => string;
  /** Changes an answer of a server. */
  readonly answer?: (executed: Executed) => Reply;
  /** Changes an answer before the process, which is configured so, reads it. */
  readonly hears?: (reply: unknown, process: Configured) => unknown;
  /** What is done to a server that begins a new life, or a new memory; `before` is what it knew. */
  readonly onNewLife?: (server: SimServer, before: Memory) => void;
}

export const allRules: Rules = { policy: (policy) => policy, countsFrom: "first byte" };

const LEAST_TOKEN = "local least = tonumber(ARGV[2])";

/** The nodes give no heed to the least token: what a client has heard of hides a counter that was lost. */
export function withoutLeastToken(edit: Rules["edit"]): NonNullable<Rules["edit"]> {
  return (name, text) => {
    const edited = edit?.(name, text) ?? text;
    if (name !== "grant" && name !== "claim") return edited;
    if (!edited.includes(LEAST_TOKEN)) throw new Error(`${name}.lua does not say: ${LEAST_TOKEN}`);
    return edited.replace(LEAST_TOKEN, "local least = 0");
  };
}
