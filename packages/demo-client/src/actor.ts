// A worker as the story speaks of it: every verb asks the process to do it and shows the audience what was asked and what came back.
// Must not soften an answer: what the lock or the gateway said is what is shown.
import type { Casting, Keep, Pending } from "./casting.js";
import type { ClassicOptions } from "./classic-lock.js";
import { Computation } from "./computation.js";
import type { Crew } from "./crew.js";
import { LeaseEnd } from "./lease-end.js";
import { Signs } from "./signs.js";
import type { Resource, Story } from "./story.js";
import { StoryDiffers } from "./story-differs.js";
import { refusalText, shortly } from "./wording.js";
import type { Sign, WorkerProcess } from "./worker-process.js";
import type { AcquireResult, BeforeWriting, Document, Door, ReadResult, Surroundings, Verbs, WriteResult } from "./worker-protocol.js";

export class Actor {
  readonly name: string;
  readonly #story: Story;
  readonly #process: WorkerProcess;
  readonly #tokens = new Map<string, number>();
  readonly #signs: Signs;
  readonly #end: LeaseEnd;
  #state: "well" | "unwell" = "well";
  #computation: Computation | undefined;
  #lastRenewal = "";
  #loss: string | undefined;
  readonly #afterwards: Casting["afterwards"];

  constructor(story: Story, { name, process, afterwards }: Casting) {
    this.#story = story;
    this.name = name;
    this.#process = process;
    this.#afterwards = afterwards;
    this.#end = new LeaseEnd((text) => story.step("over", name, { text }));
    this.#signs = new Signs(name, 20_000 + 5 * story.ttlMs);
    process.listen((sign) => this.#heard(sign));
  }

  async meets(surroundings: Surroundings): Promise<void> {
    await this.#process.ask("meet", surroundings);
  }

  /** Takes the lock, waiting for it if need be. */
  async acquires(resource: Resource, { ttlMs = this.#story.ttlMs, renew = false }: Keep = {}): Promise<AcquireResult> {
    this.#story.step("asks", this.name, { to: "lock", text: `acquire ${resource.shown} for ${ttlMs} ms${renew ? ", renewed" : ""}` });
    const answer = await this.#process.ask("acquire", { resource: resource.name, waitMs: 5 * this.#story.ttlMs + 30_000, ttlMs, renew });
    if (!answer.ok) throw new StoryDiffers(`${this.name} did not get ${resource.shown}: ${answer.message}`);
    this.#holds(resource, answer);
    await this.#story.beat();
    return answer;
  }

  /** Asks for the lock once and does not wait for anybody. */
  async tries(resource: Resource): Promise<Verbs["acquire"]["answer"]> {
    const { ttlMs } = this.#story;
    this.#story.step("asks", this.name, { to: "lock", text: `acquire ${resource.shown} for ${ttlMs} ms, without waiting` });
    const answer = await this.#process.ask("acquire", { resource: resource.name, waitMs: 0, ttlMs });
    if (answer.ok) this.#holds(resource, answer);
    else this.#story.step("refuses", "lock", { to: this.name, text: `${answer.code}: ${this.#story.withoutRun(answer.message)}` });
    await this.#story.beat();
    return answer;
  }

  /** For so long, if that is any time at all. */
  async isAtWork(ms: number): Promise<void> {
    if (ms <= 0) return;
    this.#story.step("remarks", this.name, { text: `is at work for ${ms} ms` });
    await this.#story.passes(ms);
  }

  async releases(resource: Resource): Promise<void> {
    this.#story.step("asks", this.name, { to: "lock", text: `release ${resource.shown}` });
    await this.#process.ask("release", { resource: resource.name });
    this.#end.is(`${this.name} does not hold it any more`);
    await this.#story.beat();
  }

  /** What it thinks itself, by its own clock. */
  async believesToHold(resource: Resource): Promise<boolean> {
    const { held, remainingMs } = await this.#process.ask("believes", { resource: resource.name });
    const text = held
      ? `believes that it holds ${resource.shown} for ${Math.round(remainingMs)} ms more`
      : `knows that it does not hold ${resource.shown}`;
    this.#story.step("remarks", this.name, { text });
    return held;
  }

  /** Connects to the nodes of a lock made by hand, ahead of the attempt. */
  async connectsClassic(lock: ClassicOptions): Promise<void> {
    await this.#process.ask("connectClassic", { lock });
  }

  /** One attempt with a lock made by hand. */
  async takesClassic(resource: Resource, lock: ClassicOptions): Promise<boolean> {
    this.#asksClassic(resource, lock);
    const { taken, remainingMs } = await this.#process.ask("takeClassic", { resource: resource.name, lock });
    if (taken) this.#holdsClassic(resource, remainingMs);
    else this.#story.step("refuses", "lock", { to: this.name, text: "somebody else has it" });
    await this.#story.beat();
    return taken;
  }

  /** As many attempts as it takes. */
  async waitsForClassic(resource: Resource, lock: ClassicOptions): Promise<void> {
    this.#asksClassic(resource, lock);
    for (;;) {
      const { taken, remainingMs } = await this.#process.ask("takeClassic", { resource: resource.name, lock });
      if (taken) {
        this.#holdsClassic(resource, remainingMs);
        break;
      }
      await this.#story.passes(10 + 40 * Math.random());
    }
    await this.#story.beat();
  }

  async releasesClassic(resource: Resource, check: "owner" | "nobody"): Promise<number> {
    const how = check === "owner" ? "delete the key if it is mine" : "DEL, whoever's key it is";
    this.#story.step("asks", this.name, { to: "lock", text: `release ${resource.shown}: ${how}` });
    const { removed } = await this.#process.ask("releaseClassic", { resource: resource.name, check });
    this.#story.step(removed > 0 ? "answers" : "refuses", "lock", {
      to: this.name,
      text: removed > 0 ? "a key was removed" : "nothing was removed",
    });
    this.#end.is(`${this.name} does not hold it any more`);
    await this.#story.beat();
    return removed;
  }

  /** Raises the fence before reading, so that nothing older can come in between. */
  async seals(resource: Resource): Promise<ReadResult> {
    const token = this.#tokens.get(resource.name) ?? 0;
    this.#story.step("asks", this.name, { to: "gateway", text: `seal ${resource.shown} with token ${token}`, token });
    const sealed = await this.#process.ask("seal", { resource: resource.name });
    if (!sealed.ok) throw new StoryDiffers(`${this.name} could not seal ${resource.shown}: ${sealed.code}, ${sealed.message}`);
    this.#story.step("answers", "gateway", {
      to: this.name,
      text: `200: the fence is ${token}, the document is ${shortly(sealed.document)}`,
      token,
    });
    await this.#story.beat();
    return sealed;
  }

  async reads(resource: Resource): Promise<ReadResult> {
    this.#story.step("asks", this.name, { to: this.#counter, text: `read ${resource.shown}` });
    const read = await this.#process.ask("read", { resource: resource.name, door: this.#door });
    if (!read.ok) throw new StoryDiffers(`${this.name} could not read ${resource.shown}: ${read.code}, ${read.message}`);
    this.#story.step("answers", this.#counter, { to: this.name, text: `the document is ${shortly(read.document)}` });
    await this.#story.beat();
    return read;
  }

  /** A fenced read where there is a fence, a plain one where there is none. */
  looksAt(resource: Resource): Promise<ReadResult> {
    return this.#door === "gateway" ? this.seals(resource) : this.reads(resource);
  }

  async writes(resource: Resource, document: Document): Promise<WriteResult> {
    return await this.sends(resource, document).answer;
  }

  /** Writes, and does not wait for the answer. */
  sends(resource: Resource, document: Document): Pending {
    this.#asksToWrite(resource, document);
    return this.#answered(this.#process.ask("write", { resource: resource.name, door: this.#door, document }));
  }

  /** Holds the lock, has looked at its lease and found it good, and computes what it will write. Resolves as soon as it is at that. */
  async isAboutToWrite(resource: Resource, document: Document, beforeWriting: BeforeWriting = "trusts"): Promise<Pending> {
    const decided = this.#signs.hear((sign) => sign.sign === "about_to_write", "decided" as const);
    const stopWatching = this.#signs.watch(({ sign }) => sign === "writes" && this.#asksToWrite(resource, document));
    const { doneWhen } = this.#begins();
    const sent = this.#process.ask("computeAndWrite", { resource: resource.name, door: this.#door, document, doneWhen, beforeWriting });
    const first = await Promise.race([decided, sent]);
    if (first !== "decided") {
      // The machine was so slow that the lease ended before the work began: whoever finds that acquires again.
      stopWatching();
      this.#story.step("remarks", this.name, { text: "finds its lease over before it could begin" });
      await this.acquires(resource);
      return await this.isAboutToWrite(resource, document, beforeWriting);
    }
    this.#story.step("remarks", this.name, { text: "has checked its lease: good. Is about to write" });
    await this.#story.beat();
    return this.#answered(sent.finally(stopWatching));
  }

  /** Its event loop is free again, and it goes on to write. */
  finishesComputing(): void {
    this.#story.step("resumes", this.name, { text: "has finished its computation" });
    this.#computation?.isDone();
    this.#state = "well";
  }

  /** Why the lease it took last is lost, when the worker has said that it is. */
  async learnsOfLoss(): Promise<string> {
    if (this.#loss === undefined) await this.#signs.hear(() => this.#loss !== undefined, undefined);
    return this.#loss ?? "";
  }

  /** "lost": this machine stood still for longer than the lease lasts. */
  async isRenewed(): Promise<"renewed" | "lost"> {
    const isSo = (sign: Sign): boolean => sign.sign === "renewed" && sign.outcome === "renewed" && sign.remainingMs > 0;
    if (this.#loss === undefined) await this.#signs.hear((sign) => this.#loss !== undefined || isSo(sign), undefined);
    return this.#loss === undefined ? "renewed" : "lost";
  }

  async isStopped(): Promise<void> {
    this.#state = "unwell";
    await this.#process.pause();
    this.#story.step("stops", this.name, { text: `SIGSTOP: process ${this.#process.pid} stands still` });
    await this.#story.beat();
  }

  wakesUp(): void {
    this.#story.step("resumes", this.name, { text: `SIGCONT: process ${this.#process.pid} goes on where it was` });
    this.#computation?.isDone();
    this.#process.resume();
    this.#state = "well";
  }

  async exits(crew: Crew): Promise<void> {
    this.#end.isNotTold();
    await crew.dismiss(this.#process, this.#afterwards === "ends" ? "unwell" : this.#state);
  }

  /** Until it is done, this worker hears nothing, not even that it may leave. */
  #begins(): Computation {
    this.#computation = this.#story.own(new Computation());
    this.#state = "unwell";
    return this.#computation;
  }

  get #door(): Door {
    return this.#story.door;
  }

  /** Where this act's reads and writes go. */
  get #counter(): string {
    return this.#door === "gateway" ? "gateway" : "store";
  }

  #holds(resource: Resource, { token, remainingMs, tookMs }: AcquireResult): void {
    this.#tokens.set(resource.name, token);
    this.#loss = undefined;
    this.#story.step("answers", "lock", { to: this.name, text: `granted: token ${token}, after ${tookMs.toFixed(1)} ms`, token });
    this.#story.step("holds", this.name, { text: `holds ${resource.shown} for ${Math.round(remainingMs)} ms`, token });
    this.#end.isIn(remainingMs, `the lease of ${this.name} is over`);
  }

  #asksClassic(resource: Resource, { urls, ttlMs }: ClassicOptions): void {
    const nodes = urls.length === 1 ? "one Redis" : `${urls.length} Redis`;
    this.#story.step("asks", this.name, { to: "lock", text: `SET ${resource.shown} NX PX ${ttlMs} on ${nodes}` });
  }

  #holdsClassic(resource: Resource, remainingMs: number): void {
    this.#story.step("answers", "lock", { to: this.name, text: "OK; no token" });
    this.#story.step("holds", this.name, { text: `takes it that it holds ${resource.shown} for ${Math.round(remainingMs)} ms` });
    this.#end.isIn(remainingMs, `the lease of ${this.name} is over`);
  }

  #asksToWrite(resource: Resource, document: Document): void {
    const token = this.#tokens.get(resource.name) ?? 0;
    const fenced = this.#door === "gateway";
    const text = fenced ? `PUT with token ${token}: ${shortly(document)}` : `update: ${shortly(document)}`;
    this.#story.step("asks", this.name, { to: this.#counter, text, ...(fenced ? { token } : {}) });
  }

  #answered(sent: Promise<WriteResult>): Pending {
    const answer = sent.then(async (result) => {
      const to = this.name;
      if (result.ok) this.#story.step("answers", this.#counter, { to, text: `${result.status}: stored as revision ${result.rev}` });
      else if (result.code === "lease_over")
        this.#story.step("remarks", this.name, { text: "looks at its lease again: over. Does not write" });
      else this.#story.step("refuses", this.#counter, { to, text: refusalText(result) });
      await this.#story.beat();
      return result;
    });
    // Whoever awaits the answer hears of a failure; an act that ends before has another reason to.
    answer.catch(() => undefined);
    return { answer };
  }

  #heard(sign: Sign): void {
    if (sign.sign === "lease_lost" && sign.token === this.#tokens.get(sign.resource)) this.#loss = sign.reason;
    if (sign.sign === "lease_lost")
      this.#story.step("remarks", this.name, { text: `learns now that its lease is lost: ${sign.reason}`, token: sign.token });
    if (sign.sign === "renewed") this.#renewed(sign);
    this.#signs.tell(sign);
  }

  /** It is asked again soon when too few nodes answered; saying so once is enough. */
  #renewed({ outcome, remainingMs }: Extract<Sign, { readonly sign: "renewed" }>): void {
    if (outcome !== "renewed" && outcome === this.#lastRenewal) return;
    this.#lastRenewal = outcome;
    this.#story.step("remarks", this.name, { text: `renewal: ${outcome}, ${Math.round(remainingMs)} ms left` });
    if (outcome === "renewed") this.#end.isIn(remainingMs, `the lease of ${this.name} is over`);
  }
}
