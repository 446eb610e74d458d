// The script of the stream of requests, for one life of one server. Decides by what the script may recognise that life: by having been loaded in it, or by asking.
import { createHash } from "node:crypto";
import { callScript } from "./lua.generated.js";
import type { NodeStatus } from "./node-record.js";

export interface CallScript {
  readonly sha: string;
  readonly source: string;
}

export interface CallScriptSettings {
  /** May another server answer under the same address? */
  readonly failover: "failover" | "one server";
  readonly retentionMs: number;
}

/**
 * Since Redis 7 the cache of scripts is neither kept over a restart nor replicated: a script that names the server's run_id and is found there was loaded in that
 * life, so it need not ask for it. Before Redis 7, and where another server may answer on the same connection, the script asks in every call.
 */
export function callScriptFor({ version, runId }: NodeStatus, { failover, retentionMs }: CallScriptSettings): CallScript {
  const isKept = Number.parseInt(version, 10) < 7;
  const isNamed = /^\w+$/.test(runId) && !isKept && failover === "one server";
  const source = `local RETENTION, RUN = '${retentionMs}', ${isNamed ? `'${runId}'` : "false"}\n${callScript}`;
  return { source, sha: createHash("sha1").update(source).digest("hex") };
}
