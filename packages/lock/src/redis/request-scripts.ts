// The scripts of requests as one server is taught them: with the run id of the server in their
// first line where the cache of scripts proves it.
import { createHash } from "node:crypto";
import { paddedRunId } from "./admission-record.js";
import {
  claimScript,
  extendScript,
  grantScript,
  healScript,
  inspectScript,
  raiseScript,
  releaseScript,
  sealScript,
} from "./lua.generated.js";
import type { NodeStatus } from "./node-record.js";
import type { RequestName } from "./requests.js";

interface RequestScript {
  readonly name: RequestName;
  readonly sha: string;
  readonly source: string;
}

export type RequestScripts = Readonly<Record<RequestName, RequestScript>>;

/**
 * Since Redis 7 the cache of scripts is neither kept over a restart nor replicated: a script that
 * names the server's run_id and is found in the cache was loaded since the server started, so it
 * need not ask for the run_id. Before Redis 7, and where another server may answer on the same
 * connection, the script asks in every call.
 */
export function requestScriptsFor(
  { version, runId }: Pick<NodeStatus, "version" | "runId">,
  { hasFailover, retentionMs }: { readonly hasFailover: boolean; readonly retentionMs: number },
): RequestScripts {
  const isKept = Number.parseInt(version, 10) < 7;
  const isNamed = /^\w+$/.test(runId) && !isKept && !hasFailover;
  const run = isNamed ? `'${paddedRunId(runId)}'` : "false";
  const firstLine = `local RETENTION, RUN = '${retentionMs}', ${run}\n`;
  const script = (name: RequestName, text: string): RequestScript => {
    const source = firstLine + text;
    return { name, source, sha: createHash("sha1").update(source).digest("hex") };
  };
  return {
    grant: script("grant", grantScript),
    claim: script("claim", claimScript),
    seal: script("seal", sealScript),
    extend: script("extend", extendScript),
    heal: script("heal", healScript),
    release: script("release", releaseScript),
    inspect: script("inspect", inspectScript),
    raise: script("raise", raiseScript),
  };
}
