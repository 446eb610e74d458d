// What a node is told at its start, wherever it runs.
import { expect, test } from "vitest";
import { directivesOf } from "../../src/redis/directives.js";

const spec = { name: "n1", appendfsync: "always", clock: "real", config: {} } as const;
const at = { host: "10.0.0.7", port: 20_001 };

test("a member that is a cluster announces the address at which clients find it", () => {
  const config = { "cluster-enabled": "yes" };
  const announced = { "cluster-announce-ip": "10.0.0.7", "cluster-announce-port": "20001" };
  expect(directivesOf({ ...spec, config }, at)).toMatchObject({ ...config, ...announced });
  expect(directivesOf(spec, at)).not.toHaveProperty("cluster-announce-ip");
});

test("the directives of a fleet win over the testkit's own", () => {
  expect(directivesOf({ ...spec, config: { appendonly: "no" } }, at)).toMatchObject({ appendonly: "no", save: "" });
});
