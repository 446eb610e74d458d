// A worker: a process of its own that takes leases and writes documents, as any service would. It does what the director of the story tells it to, says what
// came of it, and knows nothing of the story. Must not check anything that a real worker could not check.

import { existsSync } from "node:fs";
import { Desk } from "./desk.js";
import { HeldLeases } from "./worker-leases.js";
import type { Report, Request, Surroundings, Verb, Verbs } from "./worker-protocol.js";

type Handlers = { readonly [V in Verb]: (args: Verbs[V]["with"]) => Promise<Verbs[V]["answer"]> };

let met: { readonly leases: HeldLeases; readonly desk: Desk; readonly surroundings: Surroundings } | undefined;

function here(): NonNullable<typeof met> {
  if (met === undefined) throw new Error("a worker is told where it is before anything else");
  return met;
}

function tell(report: Report): void {
  process.send?.(report);
}

const handlers: Handlers = {
  async meet(surroundings) {
    const leases = new HeldLeases(surroundings, tell);
    met = { leases, desk: new Desk(surroundings), surroundings };
    await Promise.all([leases.ready(), met.desk.ready()]);
    return { ok: true };
  },
  acquire: (args) => here().leases.acquire(args),
  believes: async ({ resource }) => here().leases.believes(resource),
  release: ({ resource }) => here().leases.release(resource),
  takeClassic: (args) => here().leases.takeClassic(args),
  connectClassic: ({ lock }) => here().leases.connectClassic(lock),
  releaseClassic: (args) => here().leases.releaseClassic(args),
  seal: ({ resource }) => here().desk.seal(resource, here().leases.tokenOf(resource)),
  read: ({ resource, door }) => here().desk.read(resource, door),
  write: ({ resource, door, document }) => here().desk.write(door, { resource, document, token: here().leases.tokenOf(resource) }),
  async computeAndWrite({ resource, door, document, doneWhen, beforeWriting }) {
    const { leases, desk, surroundings } = here();
    const token = leases.tokenOf(resource);
    // From here to the write nothing is awaited, so no timer and no message can come between: this is the gap that no check inside a process can close.
    if (!leases.believes(resource).held) return leaseOver;
    tell({ sign: "about_to_write" });
    computeUntil(doneWhen, 60_000 + 10 * surroundings.ttlMs);
    if (beforeWriting === "looks_again" && !leases.believes(resource).held) return leaseOver;
    tell({ sign: "writes" });
    return await desk.write(door, { resource, document, token });
  },
  async leave() {
    await Promise.all([here().leases.close(), here().desk.close()]);
    return { ok: true };
  },
};

const leaseOver = { ok: false, code: "lease_over", message: "the lease is over, so nothing was written" } as const;

/**
 * Stands for building the document. Lets nothing else run in this process, so that only a file can tell it to end: the director's moment, not a span of time that a
 * slow machine could make too short or too long.
 */
function computeUntil(doneWhen: string, longestMs: number): void {
  const startedAt = performance.now();
  while (!existsSync(doneWhen)) {
    if (performance.now() - startedAt > longestMs) throw new Error(`nobody let this worker finish within ${longestMs} ms`);
    // A tiny rest, which holds the event loop up just as well and leaves the processor to others.
    Atomics.wait(nobodyWakes, 0, 0, 1);
  }
}

const nobodyWakes = new Int32Array(new SharedArrayBuffer(4));

process.on("message", (message) => {
  const { id, verb, with: args } = message as Request;
  const handle = handlers[verb] as (args: unknown) => Promise<unknown>;
  handle(args).then(
    (answer) => tell({ id, answer }),
    (error: unknown) => tell({ id, failure: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
  );
});
process.once("disconnect", () => process.exit());
