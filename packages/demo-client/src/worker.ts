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
    const leases = new HeldLeases(surroundings, (lost) => tell({ sign: "lease_lost", ...lost }));
    met = { leases, desk: new Desk(surroundings), surroundings };
    await Promise.all([leases.ready(), met.desk.ready()]);
    return { ok: true };
  },
  acquire: (args) => here().leases.acquire(args),
  seal: ({ resource }) => here().desk.seal(resource, here().leases.of(resource).token),
  read: ({ resource, door }) => here().desk.read(resource, door),
  write: ({ resource, door, document }) => here().desk.write(door, { resource, document, token: here().leases.of(resource).token }),
  async computeAndWrite({ resource, door, document }) {
    const lease = here().leases.of(resource);
    // From here to the write nothing is awaited, so no timer and no message can come between: this is the gap that no check inside a process can close.
    lease.assertHeld();
    tell({ sign: "about_to_write" });
    const missedMs = computeUntilTimeIsMissing(here().surroundings.ttlMs / 2);
    tell({ sign: "writes" });
    const written: WriteResult = await here().desk.write(door, { resource, document, token: lease.token });
    return { ...written, missedMs };
  },
  async release({ resource }) {
    const { outcome } = await here().leases.of(resource).release();
    return { ok: true, outcome };
  },
  async leave() {
    await Promise.all([here().leases.close(), here().desk.close()]);
    return { ok: true };
  },
};

/** Stands for building the document. Comes back when the clock has leapt: the process was stopped in the middle of it and did not notice. */
function computeUntilTimeIsMissing(leapMs: number): number {
  const startedAt = performance.now();
  for (let lastAt = startedAt; ; ) {
    const now = performance.now();
    if (now - lastAt > leapMs) return now - lastAt;
    if (now - startedAt > 10_000) throw new Error("nobody stopped this worker within 10 seconds");
    lastAt = now;
  }
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
