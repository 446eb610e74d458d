// Stands for election again and again: waits for the lease, runs the routine for as long as it is
// held, and gives it back when the routine has settled. Two terms of one process never overlap,
// since the next one is waited for only then.
import { setMaxListeners } from "node:events";
import type { LeaseRequest } from "../options/policy.js";
import { onAbort } from "../platform/clock.js";
import { LockError } from "../protocol/ballot.js";
import { type CampaignEvent, channels } from "../protocol/events.js";
import type { Campaign, Lease, Term, TermRoutine } from "../protocol/locker.js";
import type { AcquireCalls } from "./wait-for-lease.js";

export class LeaderCampaign implements Campaign {
  readonly ended: Promise<void>;
  readonly resource: string;
  readonly #calls: AcquireCalls;
  readonly #request: LeaseRequest;
  readonly #routine: TermRoutine;
  readonly #stopping = new AbortController();
  #term: LeaderTerm | undefined;
  #serving: Promise<void> | undefined;

  constructor(calls: AcquireCalls, request: LeaseRequest, routine: TermRoutine) {
    const { resources, signal } = request;
    this.resource = resources[0] ?? "";
    this.#calls = calls;
    this.#request = request;
    this.#routine = routine;
    const stop = (): void => void this.stop();
    if (signal?.aborted) this.#stopping.abort();
    const unwatch = signal === undefined ? undefined : onAbort(signal, stop);
    setMaxListeners(0, this.#stopping.signal);
    this.ended = this.#run().finally(() => unwatch?.());
    // A campaign that nobody looks at must not end the process.
    this.ended.catch((error) => this.#tell({ error, goesOn: false }));
  }

  get term(): Term | undefined {
    return this.#term?.leads ? this.#term : undefined;
  }

  async resign(): Promise<void> {
    this.#term?.end("resigned");
    await this.#serving;
  }

  stop(): Promise<void> {
    this.#stopping.abort();
    this.#term?.end("stopped");
    return this.ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const lease = await this.#elected(signal);
      if (lease === undefined) continue;
      this.#serving = this.#serve(lease);
      await this.#serving;
      if (!signal.aborted) await this.#calls.pause(signal);
    }
  }

  /** Undefined if it has to be tried again, or is not wanted any more. */
  async #elected(signal: AbortSignal): Promise<Lease | undefined> {
    try {
      return await this.#calls.waitFor({ ...this.#request, signal });
    } catch (error) {
      if (!(error instanceof LockError) || error.code === "FLEET_MISMATCH") throw error;
      // The locker was closed, or the campaign stopped.
      if (error.code === "LOCK_ABORTED") this.#stopping.abort();
      else await this.#calls.pause(signal);
      return undefined;
    }
  }

  async #serve(lease: Lease): Promise<void> {
    const term = new LeaderTerm(lease);
    this.#term = term;
    try {
      if (this.#stopping.signal.aborted) term.end("stopped");
      else await this.#routine(term);
    } catch (error) {
      // Else thrown because the term had ended, as it should. By the clock: after a pause, what the
      // process reads may be dealt with before the timer that aborts the signal.
      if (term.leads) this.#tell({ token: term.token, error, goesOn: true });
    } finally {
      this.#term = undefined;
      await lease[Symbol.asyncDispose]();
      term.end("over");
    }
  }

  /** Who has not subscribed to the event reads of it on stderr. */
  #tell(what: Omit<CampaignEvent, "resource">): void {
    const { resource } = this;
    if (channels.campaign.hasSubscribers) {
      channels.campaign.publish({ resource, ...what });
      return;
    }
    const { error, token, goesOn } = what;
    const where = token === undefined ? "" : ` while it led with token ${token}`;
    const next = goesOn ? "its term ends, and it stands for election again" : "it has ended";
    const detail = error instanceof Error ? error.stack : undefined;
    const message = `the campaign for ${resource} failed${where}: ${String(error)}; ${next}`;
    process.emitWarning(message, { type: "PalisadeWarning", ...(detail === undefined ? {} : { detail }) });
  }
}

class LeaderTerm implements Term {
  readonly #lease: Lease;
  readonly #controller = new AbortController();

  constructor(lease: Lease) {
    this.#lease = lease;
    const { signal } = lease;
    if (signal.aborted) this.#controller.abort(signal.reason);
    signal.addEventListener("abort", () => this.#controller.abort(signal.reason), { once: true });
  }

  get resource(): string {
    return this.#lease.resource;
  }

  get token(): number {
    return this.#lease.token;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get leads(): boolean {
    return this.#lease.held && !this.signal.aborted;
  }

  remainingMs(): number {
    return this.leads ? this.#lease.remainingMs() : 0;
  }

  assertLeads(): void {
    this.#lease.assertHeld();
    if (this.signal.aborted) throw this.signal.reason;
  }

  /** The lease is kept until the routine has settled. */
  end(why: "resigned" | "stopped" | "over"): void {
    if (this.signal.aborted) return;
    const message = `the term of ${this.resource} with token ${this.token} ${why === "over" ? "is over" : `was ${why}`}`;
    this.#controller.abort(new LockError("LEASE_LOST", message, { resources: [this.resource], reason: "released" }));
  }
}
