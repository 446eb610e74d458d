// Closing a locker at every moment of an acquisition: nothing is left on any node, and nobody
// believes in a lease.
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { type AttemptEvent, channelNames, type Lease } from "@palisade/lock";
import { describe, expect, fleetHolders, test, until } from "./lock-test.js";

/** Calls back so many microtasks from now. */
function inMicrotasks(count: number, run: () => void): void {
  if (count === 0) run();
  else queueMicrotask(() => inMicrotasks(count - 1, run));
}

describe("a locker that is closed", () => {
  test("at any moment between the winning vote and the caller's next step leaves no lease behind", async ({ fleet, open }) => {
    // Of one node, so that the attempt is told of in the very turn in which it is won.
    const started = await fleet({ nodes: 1 });
    for (let count = 0; count < 14; count++) {
      const locker = open({ nodes: started.urls });
      await locker.ready();
      let closing: Promise<void> | undefined;
      const onAttempt = (event: unknown): void => {
        if ((event as AttemptEvent).outcome === "won") inMicrotasks(count, () => (closing ??= locker.close()));
      };
      subscribe(channelNames.attempt, onAttempt);
      const outcome = await locker.acquire("r").catch((error: unknown) => error);
      await until(() => closing !== undefined, "the locker is closing");
      await closing;
      unsubscribe(channelNames.attempt, onAttempt);
      if (outcome instanceof Error) expect(outcome).toMatchObject({ code: "LOCK_ABORTED" });
      else expect((outcome as Lease).held).toBe(false);
      expect(await fleetHolders(started, "r")).toEqual([null]);
    }
  });
});
