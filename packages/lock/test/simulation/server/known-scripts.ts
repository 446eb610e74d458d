// Which native function stands for which Lua script. A script is recognised by its whole text, so that one that was changed, or is new, cannot be taken for one that is known;
// what the two do is compared on real servers by the conformance suite.
import { createHash } from "node:crypto";
import * as lua from "#lock/redis/lua.generated.js";
import type { Reply } from "./reply.js";
import type { ScriptCall } from "./script-call.js";
import { extend } from "./scripts/extend.js";
import { grant } from "./scripts/grant.js";
import { heal } from "./scripts/heal.js";
import { inspect } from "./scripts/inspect.js";
import { admit, mark, status, visit } from "./scripts/node-scripts.js";
import { raise } from "./scripts/raise.js";
import { release } from "./scripts/release.js";
import { type RequestScript, runRequests } from "./scripts/request-script.js";
import { seal } from "./scripts/seal.js";

export type ScriptName = "grant" | "seal" | "extend" | "heal" | "release" | "inspect" | "raise" | "status" | "mark" | "visit" | "admit";
export type Native = (call: ScriptCall) => Reply;
export type Natives = Readonly<Record<ScriptName, Native>>;

/** A script with the line that was put before it. */
export interface Loaded {
  readonly name: ScriptName;
  readonly sha: string;
  readonly retentionMs: number;
  readonly run: string | undefined;
}

const requests =
  (script: RequestScript): Native =>
  (call) =>
    runRequests(script, call);

/** As the Lua files have it. */
export const faithful: Natives = {
  grant,
  seal: requests(seal),
  extend: requests(extend),
  heal: requests(heal),
  release,
  inspect: requests(inspect),
  raise: requests(raise),
  status,
  mark,
  visit,
  admit,
};

const names = new Map<string, ScriptName>(Object.keys(faithful).map((name) => [textOf(name), name as ScriptName]));

function textOf(name: string): string {
  const file = { mark: "openAdmission", visit: "readFloor" }[name] ?? name;
  const text = (lua as Readonly<Record<string, string>>)[`${file}Script`];
  if (text === undefined) throw new Error(`the lock has no script ${name}`);
  return text;
}

export function recognised(source: string): Loaded {
  const [, retention, quoted, text = source] = /^local RETENTION, RUN = '(\d+)', (false|'[^']+')\n([\s\S]*)$/.exec(source) ?? [];
  const name = names.get(text);
  if (name === undefined) throw new Error(`this is no script of the lock that the simulation knows: ${source.slice(0, 200)}`);
  const run = quoted === undefined || quoted === "false" ? undefined : quoted.slice(1, -1);
  return { name, sha: createHash("sha1").update(source).digest("hex"), retentionMs: Number(retention ?? 0), run };
}
