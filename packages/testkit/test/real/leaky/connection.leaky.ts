// Leaves a connection to a shared Redis node behind.
import { connect } from "node:net";
import { test } from "@palisade/testkit/vitest";

test("connects and forgets it", ({ redis }) => {
  connect(Number(new URL(redis.urls[2] ?? "").port), "127.0.0.1");
});
