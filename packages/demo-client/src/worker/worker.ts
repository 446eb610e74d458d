// What a worker can do, each verb once: it reports what it asks, does it, and reports what came of
// it. The engine's handles take their methods from this class. A worker checks nothing that a
// service in production could not check.
import { EventEmitter, once } from "node:events";
import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Leases, type PlainLockOptions } from "./leases.js";
import {
  type BeforeWriting,
  type Document,
  type Granted,
  monotonicMs,
  type NotGranted,
  type ReadResult,
  type Refused,
  type Resource,
  UnexpectedOutcome,
  type WorkerConfig,
  type WorkerEvent,
  type WorkerStep,
  type WriteResult,
} from "./protocol.js";
import { StoreClient } from "./store-client.js";

/** How a lease is asked for; the scenario's ttl and no renewal when absent. */
interface LeaseOptions {
  readonly ttlMs?: number;
  readonly renew?: boolean;
}

interface Computation {
  /** A file: the computation is done when it exists. */
  readonly doneWhen: string;
  readonly beforeWriting: BeforeWriting;
}

export class Worker {
  readonly #config: WorkerConfig;
  readonly #report: Reporter;
  readonly #leases: Leases;
  readonly #store: StoreClient;
  /** Emits "change" after a renewal and after the loss of a lease. */
  readonly #changes = new EventEmitter();
  #renewals = 0;
  #lastRenewal = "";
  #loss: string | undefined;

  constructor(config: WorkerConfig, send: (event: WorkerEvent) => void) {
    this.#config = config;
    this.#report = new Reporter(config.name, send);
    this.#store = new StoreClient(config);
    this.#leases = new Leases(config, {
      renewed: (outcome, remainingMs) => this.#renewed(outcome, remainingMs),
      lost: ({ resource, token }, reason) => {
        this.#report.remarks(`learns now that its lease is lost: ${reason}`, { token });
        if (token === this.#leases.tokenOf({ name: resource, shown: resource })) this.#loss = reason;
        this.#changes.emit("change");
      },
    });
  }

  async ready(): Promise<void> {
    await Promise.all([this.#leases.ready(), this.#store.ready()]);
  }

  /** Gives everything back before the process joins another act. */
  async leaves(): Promise<void> {
    await Promise.all([this.#leases.close(), this.#store.close()]);
  }

  /** Waits for the lock if another worker holds it. */
  async acquires(resource: Resource, { ttlMs = this.#config.ttlMs, renew = false }: LeaseOptions = {}): Promise<Granted> {
    this.#report.asks("lock", `acquire ${resource.shown} for ${ttlMs} ms${renew ? ", renewed" : ""}`);
    const answer = await this.#acquire(resource, { ttlMs, renew, waitMs: 5 * this.#config.ttlMs + 30_000 });
    if (!answer.ok) throw this.#report.unexpected(`did not get ${resource.shown}: ${answer.message}`);
    return answer;
  }

  /** Asks for the lock once and does not wait for another holder. */
  async tries(resource: Resource): Promise<Granted | NotGranted> {
    const { ttlMs } = this.#config;
    this.#report.asks("lock", `acquire ${resource.shown} for ${ttlMs} ms, without waiting`);
    const answer = await this.#acquire(resource, { ttlMs, waitMs: 0 });
    if (!answer.ok) this.#report.refused("lock", `${answer.code}: ${answer.message}`);
    return answer;
  }

  async releases(resource: Resource): Promise<void> {
    this.#report.asks("lock", `release ${resource.shown}`);
    await this.#leases.release(resource);
    this.#report.holdsNoMore();
  }

  /** By its own clock. */
  async believesToHold(resource: Resource): Promise<boolean> {
    const remainingMs = this.#leases.remainingMs(resource);
    if (remainingMs > 0) this.#report.remarks(`believes that it holds ${resource.shown} for ${Math.round(remainingMs)} ms more`);
    else this.#report.remarks(`knows that it does not hold ${resource.shown}`);
    return remainingMs > 0;
  }

  /** "lost": this machine stood still for longer than the lease lasts. */
  async isRenewed(): Promise<"renewed" | "lost"> {
    const before = this.#renewals;
    await this.#until(() => this.#loss !== undefined || this.#renewals > before);
    return this.#loss === undefined ? "renewed" : "lost";
  }

  /** Why the lease that it took last is lost, as soon as it is. */
  async learnsOfLoss(): Promise<string | undefined> {
    await this.#until(() => this.#loss !== undefined);
    return this.#loss;
  }

  /** Connects to the nodes of a plain lock before the lock is asked for. */
  async connectsPlainLock(lock: PlainLockOptions): Promise<void> {
    await this.#leases.plainLock(lock, "every node");
  }

  /** Asks once. */
  async takesPlainLock(resource: Resource, lock: PlainLockOptions): Promise<boolean> {
    this.#asksForPlainLock(resource, lock);
    const taken = await this.#takePlainLock(resource, lock);
    if (!taken) this.#report.refused("lock", "another worker has it");
    return taken;
  }

  /** Asks until the lock is granted. */
  async waitsForPlainLock(resource: Resource, lock: PlainLockOptions): Promise<void> {
    this.#asksForPlainLock(resource, lock);
    while (!(await this.#takePlainLock(resource, lock))) await sleep(10 + 40 * Math.random());
  }

  async releasesPlainLock(resource: Resource, check: "owner" | "none"): Promise<number> {
    const how = check === "owner" ? "delete the key if it is mine" : "DEL, without a check of the owner";
    this.#report.asks("lock", `release ${resource.shown}: ${how}`);
    const removed = await this.#leases.releasePlain(resource, check);
    if (removed > 0) this.#report.answered("lock", "a key was removed");
    else this.#report.refused("lock", "nothing was removed");
    this.#report.holdsNoMore();
    return removed;
  }

  /** Asks once for the advisory lock of a session in Postgres: the session's process, or 0. */
  async locksSession(resource: Resource): Promise<number> {
    this.#report.asks("store", `pg_try_advisory_lock(${resource.shown})`);
    const pid = await this.#store.lockSession(resource.name);
    if (pid === 0) this.#report.refused("store", "false: another session has it");
    else this.#report.answered("store", `true: session ${pid} has it, for as long as it lasts`);
    return pid;
  }

  async unlocksSession(resource: Resource): Promise<void> {
    await this.#store.unlockSession(resource.name);
    this.#report.remarks(`ends its session, and with it the lock of ${resource.shown}`);
  }

  /** Raises the fence before it reads, so that no older token can write in between. */
  async seals(resource: Resource): Promise<ReadResult> {
    const token = this.#leases.tokenOf(resource) ?? 0;
    this.#report.asks("gateway", `seal ${resource.shown} with token ${token}`, { token });
    const sealed = await this.#store.seal(resource.name, token);
    if (!sealed.ok) throw this.#report.unexpected(`could not seal ${resource.shown}: ${sealed.code}, ${sealed.message}`);
    this.#report.answered("gateway", `200: the fence is ${token}, the document is ${shortened(sealed.document)}`, { token });
    return sealed;
  }

  async reads(resource: Resource): Promise<ReadResult> {
    this.#report.asks(this.#store.lane, `read ${resource.shown}`);
    const read = await this.#store.read(resource.name);
    if (!read.ok) throw this.#report.unexpected(`could not read ${resource.shown}: ${read.code}, ${read.message}`);
    this.#report.answered(this.#store.lane, `the document is ${shortened(read.document)}`);
    return read;
  }

  /** A sealed read where there is a fence, a plain one where there is none. */
  looksAt(resource: Resource): Promise<ReadResult> {
    return this.#config.route === "gateway" ? this.seals(resource) : this.reads(resource);
  }

  async writes(resource: Resource, document: Document): Promise<WriteResult> {
    const token = this.#leases.tokenOf(resource);
    const { lane } = this.#store;
    if (lane === "store") this.#report.asks(lane, `update: ${shortened(document)}`);
    else this.#report.asks(lane, `PUT with token ${token ?? 0}: ${shortened(document)}`, { token: token ?? 0 });
    const result = await this.#store.write({ resource: resource.name, document, token });
    if (!result.ok) this.#report.refused(lane, refusalText(result));
    else {
      const { status, rev, overwritten } = result;
      const stored = `${status}: stored as revision ${rev}`;
      if (overwritten === undefined) this.#report.answered(lane, stored);
      else this.#report.answered(lane, `${stored}, over ${shortened(overwritten)}`, { kind: "overwrites" });
    }
    return result;
  }

  /** Looks at its lease, computes, and writes. */
  async computesAndWrites(resource: Resource, document: Document, { doneWhen, beforeWriting }: Computation): Promise<WriteResult> {
    while (!this.#store.holdsSession(resource.name) && this.#leases.remainingMs(resource) <= 0) {
      // The machine was so slow that the lease ended before the work began.
      this.#report.remarks("finds its lease over before it could begin");
      await this.acquires(resource);
    }
    // From here to the write nothing is awaited, so no timer and no message can come between:
    // this is the gap that no check inside a process can close.
    this.#report.isAboutToWrite();
    computeUntil(doneWhen, 60_000 + 10 * this.#config.ttlMs);
    if (beforeWriting === "looks_again" && this.#leases.remainingMs(resource) <= 0) {
      this.#report.remarks("looks at its lease again: over. Does not write");
      return { ok: false, code: "lease_over", message: "the lease is over, so nothing was written" };
    }
    return await this.writes(resource, document);
  }

  async #acquire(resource: Resource, options: Parameters<Leases["acquire"]>[1]): Promise<Granted | NotGranted> {
    const askedAt = performance.now();
    const answer = await this.#leases.acquire(resource, options);
    if (!answer.ok) return answer;
    this.#loss = undefined;
    const { token } = answer;
    this.#report.answered("lock", `granted: token ${token}, after ${(performance.now() - askedAt).toFixed(1)} ms`, { token });
    const leaseMs = this.#leases.remainingMs(resource);
    this.#report.holds(`holds ${resource.shown} for ${Math.round(leaseMs)} ms`, { token, leaseMs });
    return answer;
  }

  #asksForPlainLock(resource: Resource, { urls, ttlMs }: PlainLockOptions): void {
    const nodes = urls.length === 1 ? "one Redis" : `${urls.length} Redis`;
    this.#report.asks("lock", `SET ${resource.shown} NX PX ${ttlMs} on ${nodes}`);
  }

  async #takePlainLock(resource: Resource, lock: PlainLockOptions): Promise<boolean> {
    const taken = await this.#leases.takePlain(resource, lock);
    if (!taken) return false;
    this.#report.answered("lock", "OK; no token");
    const leaseMs = this.#leases.remainingMs(resource);
    this.#report.holds(`believes that it holds ${resource.shown} for ${Math.round(leaseMs)} ms`, { leaseMs });
    return true;
  }

  /** A renewal that fails is soon tried again: the same failure is shown once. */
  #renewed(outcome: string, remainingMs: number): void {
    if (outcome === "renewed" || outcome !== this.#lastRenewal) {
      const text = `renewal: ${outcome}, ${Math.round(remainingMs)} ms left`;
      this.#report.remarks(text, outcome === "renewed" ? { leaseMs: remainingMs } : {});
    }
    this.#lastRenewal = outcome;
    if (outcome === "renewed" && remainingMs > 0) this.#renewals += 1;
    this.#changes.emit("change");
  }

  async #until(condition: () => boolean): Promise<void> {
    const limitMs = 20_000 + 5 * this.#config.ttlMs;
    const signal = AbortSignal.timeout(limitMs);
    while (!condition()) {
      await once(this.#changes, "change", { signal }).catch(() => {
        throw this.#report.unexpected(`saw no renewal and no loss of its lease within ${limitMs} ms`);
      });
    }
  }
}

const restingCell = new Int32Array(new SharedArrayBuffer(4));

/**
 * Stands for building the document. Nothing else runs in this process meanwhile, so only a file can
 * end it: at the moment that the scenario chooses, however slow the machine is.
 */
function computeUntil(doneWhen: string, longestMs: number): void {
  const startedAt = performance.now();
  while (!existsSync(doneWhen)) {
    if (performance.now() - startedAt > longestMs) throw new Error(`the computation was not ended within ${longestMs} ms`);
    // A short rest: it blocks the event loop just as well, and leaves the processor to others.
    Atomics.wait(restingCell, 0, 0, 1);
  }
}

type Details = Pick<WorkerStep, "token" | "leaseMs">;

class Reporter {
  readonly #name: string;
  readonly #send: (event: WorkerEvent) => void;

  constructor(name: string, send: (event: WorkerEvent) => void) {
    this.#name = name;
    this.#send = send;
  }

  asks(server: string, text: string, details: Details = {}): void {
    this.#step({ kind: "asks", from: this.#name, to: server, text, ...details });
  }

  answered(server: string, text: string, { kind = "answers", ...details }: Details & { kind?: WorkerStep["kind"] } = {}): void {
    this.#step({ kind, from: server, to: this.#name, text, ...details });
  }

  refused(server: string, text: string): void {
    this.answered(server, text, { kind: "refuses" });
  }

  remarks(text: string, details: Details = {}): void {
    this.#step({ kind: "remarks", from: this.#name, text, ...details });
  }

  holds(text: string, details: Details): void {
    this.#step({ kind: "holds", from: this.#name, text, ...details });
  }

  holdsNoMore(): void {
    this.#step({ kind: "over", from: this.#name, text: `${this.#name} does not hold it any more` });
  }

  /** The last report before the event loop is blocked. */
  isAboutToWrite(): void {
    this.remarks("has checked its lease: good. Is about to write");
    this.#send({ event: "about_to_write" });
  }

  unexpected(text: string): UnexpectedOutcome {
    return new UnexpectedOutcome(`${this.#name} ${text}`);
  }

  #step(step: Omit<WorkerStep, "at">): void {
    this.#send({ event: "step", step: { ...step, at: monotonicMs() } });
  }
}

function shortened(document: Document | null): string {
  const text = JSON.stringify(document);
  return text.length > 70 ? `${text.slice(0, 69)}…` : text;
}

function refusalText({ status, code, message, presentedToken, currentToken }: Refused): string {
  if (code === "fencing_token_stale") return `412 ${code}: token ${presentedToken}, the fence is ${currentToken}`;
  return `${status ?? "no answer"} ${code}: ${message}`;
}
