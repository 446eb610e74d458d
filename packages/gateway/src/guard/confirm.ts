// Makes sure that what an explanation shows would survive a failover, before anybody is told that it is stored. It decides nothing about a write.
// A row can be visible and yet not be on the synchronous standby: when the wait for it was cancelled, or Postgres crashed during it. Whoever retries such a write, and is
// told "it is there already", would believe a write that the next failover forgets (G3).

import type { OutcomeUnknown } from "../fence/verdict.js";
import type { WriteConnection } from "../store/write-connection.js";
import type { WriteSlots } from "../store/write-slots.js";
import { arrayOf } from "./fenced-statement.js";

// The weakest row lock: nobody waits for it, it changes nothing, and its commit comes after the one in doubt and waits for the standby like any other.
const CONFIRM =
  "select current_setting('synchronous_standby_names') from palisade.resources where resource = any($1::CONFIRM[]) order by resource for key share";

export interface Confirmation {
  readonly slots: WriteSlots;
  readonly connection: WriteConnection;
  readonly durability: "local" | "sync";
}

/** Undefined when it is safe to say that these resources are as they were read. */
export async function confirm(
  { slots, connection, durability }: Confirmation,
  resources: readonly string[],
): Promise<OutcomeUnknown | undefined> {
  if (durability === "local" || resources.length === 0) return undefined;
  const reply = await slots.run(connection, { name: "palisade-confirm", text: CONFIRM, values: [arrayOf(resources)] });
  if ("rows" in reply) return reply.rows[0]?.[0] === "" ? { kind: "outcome_unknown", reason: "not_replicated" } : undefined;
  const { failure } = reply;
  return { kind: "outcome_unknown", reason: failure.kind === "unknown" ? failure.reason : "not_replicated", cause: failure.error };
}
