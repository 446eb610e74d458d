// A worker writes in time, and its packet is late: no check by the worker would have helped.
import { FaultProxy } from "@palisade/testkit";
import type { ActRun, Differing, Scenario } from "../engine/act-run.js";
import { expectLoss, expectRefusal, expectTurns, fenced, type Outcome, unfenced } from "./late-write.js";

/** A server may end a request that has begun and is not complete after this time. */
const MAX_DELAY_MS = 5_000;
const SEND_TIMEOUT_MS = 30_000;

async function run(act: ActRun): Promise<Outcome> {
  const stock = act.resource("stock/9");
  const { proxy, differing } = await ownConnection(act);
  const one = await act.worker("worker 1", differing);
  const two = await act.worker("worker 2");
  const server = act.route === "gateway" ? "gateway" : "store";

  const older = await one.acquires(stock);
  const workMs = act.ttlMs - MAX_DELAY_MS;
  if (workMs > 0) {
    act.step("remarks", one.name, { text: `is at work for ${workMs} ms` });
    await act.passes(workMs);
  }
  proxy.holdRequests();
  act.step("breaks", server, { text: "worker 1's packets get stuck on the way" });
  const sent = one.writes(stock, { left: 4, by: one.name });
  await proxy.until(({ requests }) => requests.waitingBytes > 0, SEND_TIMEOUT_MS);

  const newer = await two.acquires(stock);
  await two.looksAt(stock);
  await two.writes(stock, { left: 3, by: two.name });

  act.step("remarks", server, { text: "worker 1's packets arrive" });
  proxy.deliver();
  const late = await sent;
  const stored = await act.stored(stock);
  expectTurns(act, { older, newer });
  return { late, stored };
}

/** Worker 1 reaches the store through a proxy of its own. */
async function ownConnection(act: ActRun): Promise<{ readonly proxy: FaultProxy; readonly differing: Differing }> {
  const { gatewayUrl, databaseUrl } = act.environment;
  const url = act.route === "gateway" ? gatewayUrl : databaseUrl;
  const proxy = await FaultProxy.start({ upstream: { host: new URL(url).hostname, port: Number(new URL(url).port) } });
  act.own({ [Symbol.asyncDispose]: () => proxy.stop() });
  return { proxy, differing: { [act.route === "gateway" ? "gatewayUrl" : "databaseUrl"]: proxy.urlOf(url) } };
}

export const delayedWrite: Scenario = {
  name: "delayed-write",
  about: "a write that was sent in time arrives after the next holder's",
  acts: [
    fenced("through the gateway", async (act) => expectRefusal(act, await run(act), "the late packet is refused: its token is stale")),
    unfenced("control: straight into a table", async (act) => expectLoss(act, await run(act), "the late packet is executed")),
  ],
  proven: "A write that is late on the network is refused by its token; without the fence it overwrites what came after it.",
};
