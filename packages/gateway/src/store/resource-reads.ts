// Reads of one resource. Those that wait while others are under way go together as one statement:
// a statement each costs more than all else that a read does.
import { eq, sql } from "drizzle-orm";
import { BoundedWait, type Waiter } from "./bounded-wait.js";
import { type ReadResult, state, value } from "./read.js";
import type { ReadPool } from "./read-pool.js";
import { resources } from "./schema.js";
import { tracing } from "./spans.js";

/** Statements under way while further reads wait for one of them: few, so that more share one. */
const UNDER_WAY = 4;
const MOST_TOGETHER = 16;
/** Of documents in one answer of Postgres, if they are as large as those before. */
const CHARACTERS_TOGETHER = 1_000_000;

interface Waiting extends Waiter {
  readonly resource: string;
  /** The request that it came with, where requests are traced. */
  readonly span: unknown;
  readonly settle: (result: ReadResult) => void;
}

export class ResourceReads {
  readonly #pool: ReadPool;
  readonly #one: (resource: string) => Promise<ReadResult>;
  readonly #several: (names: readonly string[]) => Promise<readonly ReadResult[]>;
  /** In the order in which they came. */
  readonly #waiting = new Set<Waiting>();
  readonly #wait: BoundedWait<Waiting>;
  #underWay = 0;
  #together = MOST_TOGETHER;

  /** `maxWaitMs`: how long a read waits for those under way; they may be slow, and not fail. */
  constructor(pool: ReadPool, maxWaitMs: number) {
    this.#pool = pool;
    [this.#one, this.#several] = statementsOn(pool);
    const limits = { maxAccepted: Number.POSITIVE_INFINITY, maxAcceptedBytes: Number.POSITIVE_INFINITY, maxWaitMs };
    this.#wait = new BoundedWait(limits, (read, why) => this.#taken(read).settle(why));
  }

  /** `alone`: where the rows of several resources are on several servers. */
  read(resource: string, how: "with others" | "alone"): Promise<ReadResult> {
    if (how === "alone") return this.#one(resource);
    return new Promise((settle) => {
      const span = tracing.spans?.current();
      const read: Waiting = { resource, span, settle, bytes: 0, giveUp: undefined, waitedMs: 0, waitsSince: 0, overdueAt: 0 };
      if (this.#underWay < UNDER_WAY) return void this.#send([read]);
      const refusal = this.#pool.refusal(this.#waiting.size);
      if (refusal !== undefined) return settle(refusal);
      this.#waiting.add(read);
      this.#wait.accept(read);
    });
  }

  #taken(read: Waiting): Waiting {
    this.#waiting.delete(read);
    this.#wait.leave(read);
    return read;
  }

  #takeFirst(atMost: number): Waiting[] {
    const taken: Waiting[] = [];
    for (const read of this.#waiting) if (taken.push(this.#taken(read)) === atMost) break;
    return taken;
  }

  async #send(reads: readonly Waiting[]): Promise<void> {
    this.#underWay += 1;
    const results = await this.#resultsOf(reads);
    this.#underWay -= 1;
    for (const [index, read] of reads.entries()) {
      const result = results[index];
      if (result === undefined) void this.#goAlone(read);
      else read.settle(result);
    }
    if (results.some(({ kind }) => kind !== "unavailable")) this.#next(results);
    // They wait in the pool, and are answered in their time, whatever becomes of the others.
    else for (const read of this.#takeFirst(Number.POSITIVE_INFINITY)) void this.#goAlone(read);
  }

  #resultsOf(reads: readonly Waiting[]): Promise<readonly ReadResult[]> {
    const names = reads.map(({ resource }) => resource);
    const run = async () => (names.length === 1 ? [await this.#one(names[0] ?? "")] : await this.#several(names));
    const { spans } = tracing;
    return spans === undefined
      ? run()
      : spans.together(
          reads.map(({ span }) => span),
          run,
        );
  }

  #next(before: readonly ReadResult[]): void {
    const characters = before.reduce((sum, read) => sum + (read.kind === "found" ? read.value.length : 0), before.length);
    this.#together = Math.max(1, Math.min(MOST_TOGETHER, Math.floor((CHARACTERS_TOGETHER * before.length) / characters)));
    if (this.#waiting.size > 0) void this.#send(this.#takeFirst(this.#together));
  }

  async #goAlone(read: Waiting): Promise<void> {
    for (const result of await this.#resultsOf([read])) read.settle(result);
  }
}

/**
 * Built once, because building a statement costs as much as running it. The second one answers with
 * nothing where it failed.
 */
function statementsOn(pool: ReadPool) {
  const rows = () => pool.db.select({ ...state, value }).from(resources);
  const one = rows()
    .where(eq(resources.resource, sql.placeholder("resource")))
    .prepare("palisade-read");
  const many = rows()
    .where(sql`${resources.resource} = any(${sql.placeholder("names")}::text[])`)
    .prepare("palisade-read-several");
  type Row = Awaited<ReturnType<typeof one.execute>>[number];
  const resultOf = (resource: string, row: Row | undefined): ReadResult => {
    if (row === undefined) return { kind: "unknown_resource", resource };
    const { value: text, ...rest } = row;
    return text === null ? { kind: "absent", ...rest } : { kind: "found", ...rest, value: text };
  };
  return [
    (resource: string) => pool.read(async (): Promise<ReadResult> => resultOf(resource, (await one.execute({ resource }))[0])),
    async (names: readonly string[]): Promise<readonly ReadResult[]> => {
      const found = await pool.read(async () => new Map((await many.execute({ names })).map((row) => [row.resource, row])));
      return "kind" in found ? [] : names.map((name) => resultOf(name, found.get(name)));
    },
  ] as const;
}
