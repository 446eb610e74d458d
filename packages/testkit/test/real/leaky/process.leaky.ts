// Leaves a process and a connection to a shared Redis node behind.
import { connect } from "node:net";
import { startChild } from "@palisade/testkit";
import { test } from "@palisade/testkit/vitest";

test("starts a child and forgets it", () => {
  startChild({ command: "sleep", args: ["600"] });
});

test("connects and forgets it", ({ redis }) => {
  connect(Number(new URL(redis.urls[2] ?? "").port), "127.0.0.1");
});
