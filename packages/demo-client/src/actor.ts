// A worker as the story speaks of it: every verb asks the process to do it and shows the audience what was asked and what came back.
// Must not soften an answer: what the lock or the gateway said is what is shown.
import type { Crew } from "./crew.js";
import type { Resource, Story } from "./story.js";
import { StoryDiffers } from "./story-differs.js";
import type { Sign, WorkerProcess } from "./worker-process.js";
import type { AcquireResult, Document, ReadResult, Surroundings, Verbs, WriteResult } from "./worker-protocol.js";

/** A write that has been decided upon and not yet sent. */
export interface PendingWrite {
  readonly answer: Promise<Verbs["computeAndWrite"]["answer"]>;
}

export class Actor {
  readonly name: string;
  readonly #story: Story;
  readonly #process: WorkerProcess;
  readonly #tokens = new Map<string, number>();
  #leaseEnds: NodeJS.Timeout | undefined;
  #state: "well" | "unwell" = "well";
  #onSign: (sign: Sign) => void = () => undefined;

  constructor(story: Story, name: string, process: WorkerProcess) {
    this.#story = story;
    this.name = name;
    this.#process = process;
    process.listen((sign) => this.#heard(sign));
  }

  async meets(surroundings: Surroundings): Promise<void> {
    await this.#process.ask("meet", surroundings);
  }

  /** Takes the lock, waiting for it if need be. */
  async acquires(resource: Resource): Promise<AcquireResult> {
    const { ttlMs } = this.#story;
    this.#story.step("asks", this.name, { to: "lock", text: `acquire ${resource.shown} for ${ttlMs} ms` });
    const answer = await this.#process.ask("acquire", { resource: resource.name, waitMs: 3 * ttlMs + 5_000 });
    if (!answer.ok) throw new StoryDiffers(`${this.name} did not get ${resource.shown}: ${answer.message}`);
    const { token, remainingMs, tookMs } = answer;
    this.#tokens.set(resource.name, token);
    this.#story.step("answers", "lock", { to: this.name, text: `granted: token ${token}, after ${tookMs.toFixed(1)} ms`, token });
    this.#story.step("holds", this.name, { text: `holds ${resource.shown} for ${Math.round(remainingMs)} ms`, token });
    clearTimeout(this.#leaseEnds);
    this.#leaseEnds = setTimeout(
      () => this.#story.step("over", this.name, { text: `the lease of ${this.name} is over`, token }),
      remainingMs,
    );
    await this.#story.beat();
    return answer;
  }

  /** Raises the fence before reading, so that nothing older can come in between. */
  async seals(resource: Resource): Promise<ReadResult> {
    const token = this.#tokens.get(resource.name) ?? 0;
    this.#story.step("asks", this.name, { to: "gateway", text: `seal ${resource.shown} with token ${token}`, token });
    const sealed = await this.#process.ask("seal", { resource: resource.name });
    if (!sealed.ok) throw new StoryDiffers(`${this.name} could not seal ${resource.shown}: ${sealed.code}, ${sealed.message}`);
    this.#story.step("answers", "gateway", {
      to: this.name,
      text: `200: the fence is ${token}, the document is ${JSON.stringify(sealed.document)}`,
      token,
    });
    await this.#story.beat();
    return sealed;
  }

  async reads(resource: Resource): Promise<ReadResult> {
    const to = this.#counter;
    this.#story.step("asks", this.name, { to, text: `read ${resource.shown}` });
    const read = await this.#process.ask("read", { resource: resource.name, door: this.#story.door });
    if (!read.ok) throw new StoryDiffers(`${this.name} could not read ${resource.shown}: ${read.code}, ${read.message}`);
    this.#story.step("answers", to, { to: this.name, text: `the document is ${JSON.stringify(read.document)}` });
    await this.#story.beat();
    return read;
  }

  async writes(resource: Resource, document: Document): Promise<WriteResult> {
    this.#asksToWrite(resource, document);
    const answer = await this.#process.ask("write", { resource: resource.name, door: this.#story.door, document });
    return await this.#wasAnswered(answer);
  }

  /** Has looked at its lease and found it good, and computes what it will write. Resolves as soon as it is at that. */
  async isAboutToWrite(resource: Resource, document: Document): Promise<PendingWrite> {
    const decided = new Promise<void>((resolve) => {
      this.#onSign = ({ sign }) => {
        if (sign === "about_to_write") resolve();
        if (sign === "writes") this.#asksToWrite(resource, document);
      };
    });
    const sent = this.#process.ask("computeAndWrite", { resource: resource.name, door: this.#story.door, document });
    await Promise.race([decided, sent]);
    this.#story.step("remarks", this.name, { text: "has checked its lease: good. Is about to write" });
    const answer = sent.then(async (written) => {
      await this.#wasAnswered(written);
      return written;
    });
    // Whoever awaits the answer hears of a failure; an act that ends before has another reason to.
    answer.catch(() => undefined);
    return { answer };
  }

  async isStopped(): Promise<void> {
    this.#state = "unwell";
    await this.#process.pause();
    this.#story.step("stops", this.name, { text: `SIGSTOP: process ${this.#process.pid} stands still` });
    await this.#story.beat();
  }

  wakesUp(): void {
    this.#story.step("resumes", this.name, { text: `SIGCONT: process ${this.#process.pid} goes on where it was` });
    this.#process.resume();
    this.#state = "well";
  }

  async exits(crew: Crew): Promise<void> {
    clearTimeout(this.#leaseEnds);
    await crew.dismiss(this.#process, this.#state);
  }

  /** Where this act's reads and writes go. */
  get #counter(): string {
    return this.#story.door === "gateway" ? "gateway" : "store";
  }

  #asksToWrite(resource: Resource, document: Document): void {
    const token = this.#tokens.get(resource.name) ?? 0;
    const how =
      this.#story.door === "gateway"
        ? { token, text: `PUT with token ${token}: ${JSON.stringify(document)}` }
        : { text: `update: ${JSON.stringify(document)}` };
    this.#story.step("asks", this.name, { to: this.#counter, ...how });
  }

  async #wasAnswered(answer: WriteResult): Promise<WriteResult> {
    const to = this.name;
    if (answer.ok) this.#story.step("answers", this.#counter, { to, text: `${answer.status}: stored as revision ${answer.rev}` });
    else this.#story.step("refuses", this.#counter, { to, text: refusalText(answer) });
    await this.#story.beat();
    return answer;
  }

  #heard(sign: Sign): void {
    if (sign.sign === "lease_lost")
      this.#story.step("remarks", this.name, { text: `learns now that its lease is lost: ${sign.reason}`, token: sign.token });
    this.#onSign(sign);
  }
}

function refusalText(answer: Extract<WriteResult, { ok: false }>): string {
  if (answer.code === "fencing_token_stale")
    return `412 ${answer.code}: token ${answer.presentedToken}, the fence is ${answer.currentToken}`;
  return `${answer.status ?? "no answer"} ${answer.code}: ${answer.message}`;
}
