// Leaves a process behind.
import { startChild } from "@palisade/testkit";
import { test } from "@palisade/testkit/vitest";

test("starts a child and forgets it", () => {
  startChild({ command: "sleep", args: ["600"] });
});
