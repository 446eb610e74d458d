// However a parent ends, its children end with it.
import { afterAll, describe, expect, test } from "vitest";
import { ended, endOwner, endOwners, startOwner, untilGone } from "./owner.js";

afterAll(endOwners);

// The guard by the kernel where there is one, and the other everywhere.
describe.concurrent.each(["", "reaper"])("with the guard %j", (guard) => {
  const parentThat = (ending: string) =>
    startOwner<number[]>({ program: "unit/process-orphans", args: [ending], env: { PALISADE_ORPHAN_GUARD: guard } });

  test.each(["SIGKILL", "SIGTERM", "SIGINT"] as const)("%s to the parent leaves no child", async (signal) => {
    const { owner: parent, owned: pids } = await parentThat("idle");
    expect(await endOwner(parent, signal)).toBe(signal);
    await untilGone(pids);
  });

  test("SIGINT ends a parent that has loaded testcontainers, and its children", async () => {
    const { owner: parent, owned: pids } = await parentThat("testcontainers");
    expect(await endOwner(parent, "SIGINT")).toBe("SIGINT");
    await untilGone(pids);
  });

  test.each(["exit", "end"])("a parent that comes to its %s leaves no child, and is not kept alive by one", async (ending) => {
    const { owner: parent, owned: pids } = await parentThat(ending);
    expect(await ended(parent)).toBe(0);
    await untilGone(pids);
  });
});
