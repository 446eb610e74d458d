// A worker: a process of its own that takes leases and writes documents, as any service would. It does what the director of the story tells it to, says what
// came of it, and knows nothing of the story. Must not check anything that a real worker could not check.

import { Desk } from "./desk.js";
import { HeldLeases } from "./worker-leases.js";
import type { Report, Request, Surroundings, Verb, Verbs, WriteResult } from "./worker-protocol.js";

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
  async computeAndWrite({ resource, door, document, compute, beforeWriting }) {
    const { leases, desk, surroundings } = here();
    const token = leases.tokenOf(resource);
    // From here to the write nothing is awaited, so no timer and no message can come between: this is the gap that no check inside a process can close.
    if (!leases.believes(resource).held) return { ...leaseOver, computedMs: 0 };
    // Before the sign: whoever hears it may stop this process before the computation has begun.
    const startedAt = performance.now();
    tell({ sign: "about_to_write" });
    const computedMs =
      compute === "until_stopped" ? computeUntilTimeIsMissing(startedAt, surroundings.ttlMs / 2) : computeFor(compute.forMs);
    if (beforeWriting === "looks_again" && !leases.believes(resource).held) return { ...leaseOver, computedMs };
    tell({ sign: "writes" });
    const written: WriteResult = await desk.write(door, { resource, document, token });
    return { ...written, computedMs };
  },
  async leave() {
    await Promise.all([here().leases.close(), here().desk.close()]);
    return { ok: true };
  },
};

const leaseOver = { ok: false, code: "lease_over", message: "the lease is over, so nothing was written" } as const;

/** Stands for building the document. Comes back when the clock has leapt: the process was stopped in the middle of it and did not notice. */
function computeUntilTimeIsMissing(startedAt: number, leapMs: number): number {
  for (let lastAt = startedAt; ; ) {
    const now = performance.now();
    if (now - lastAt > leapMs) return now - startedAt;
    if (now - startedAt > 10_000) throw new Error("nobody stopped this worker within 10 seconds");
    lastAt = now;
  }
}

/** Stands for work that does not let go of the event loop. */
function computeFor(forMs: number): number {
  const startedAt = performance.now();
  while (performance.now() - startedAt < forMs);
  return performance.now() - startedAt;
}

process.on("message", (message) => {
  const { id, verb, with: args } = message as Request;
  const handle = handlers[verb] as (args: unknown) => Promise<unknown>;
  handle(args).then(
    (answer) => tell({ id, answer }),
    (error: unknown) => tell({ id, failure: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
  );
});
process.once("disconnect", () => process.exit());
