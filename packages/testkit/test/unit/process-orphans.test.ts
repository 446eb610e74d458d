// However a parent ends, its children end with it.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { untilGone } from "./process-gone.js";

const program = fileURLToPath(new URL("../../.build/test/unit/process-orphans.program.js", import.meta.url));

async function childrenOf(ending: string, guard: string): Promise<{ parent: ReturnType<typeof spawn>; pids: number[] }> {
  const parent = spawn(process.execPath, [program, ending], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, PALISADE_ORPHAN_GUARD: guard },
  });
  const [line] = (await once(createInterface(parent.stdout), "line")) as [string];
  return { parent, pids: JSON.parse(line) as number[] };
}

// The guard by the kernel where there is one, and the other everywhere.
describe.concurrent.each(["", "reaper"])("with the guard %j", (guard) => {
  test.each(["SIGKILL", "SIGTERM", "SIGINT"] as const)("%s to the parent leaves no child", async (signal) => {
    const { parent, pids } = await childrenOf("idle", guard);
    parent.kill(signal);
    const [, by] = (await once(parent, "exit")) as [number | null, string | null];
    expect(by).toBe(signal);
    await untilGone(pids);
  });

  test.each(["exit", "end"])("a parent that comes to its %s leaves no child, and is not kept alive by one", async (ending) => {
    const { parent, pids } = await childrenOf(ending, guard);
    const [code] = (await once(parent, "exit")) as [number | null];
    expect(code).toBe(0);
    await untilGone(pids);
  });
});
