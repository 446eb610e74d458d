// The address of a server as a client behind a proxy knows it.
import { expect, onTestFinished, test } from "vitest";
import { FaultProxy } from "../../src/proxy/fault-proxy.js";

test("a URL through a proxy names the proxy's host and port, and nothing of the server's address", async () => {
  const proxy = await FaultProxy.start({ upstream: { host: "10.0.0.7", port: 5_432 } });
  onTestFinished(() => proxy.stop());
  const through = proxy.urlOf("postgres://postgres@10.0.0.7:5432/app?application_name=a");
  expect(through).toBe(`postgres://postgres@127.0.0.1:${proxy.port}/app?application_name=a`);
  expect(proxy.urlOf("redis://10.0.0.7")).toBe(`redis://127.0.0.1:${proxy.port}`);
});
