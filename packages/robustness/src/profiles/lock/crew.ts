// The client processes of a run: starts them, collects what they tell, stops and continues them. It judges nothing and breaks no network.
import { fileURLToPath } from "node:url";
import { type Child, startChild } from "@palisade/testkit";
import type { Stall, Tenure } from "../../history/lease-record.js";
import type { ClientOrders, FromClient, ToClient } from "./client-words.js";

const program = fileURLToPath(new URL("client.js", import.meta.url));
/** A sleeper is continued again and again until it says that it is awake: it may stop itself later than its message arrived. */
const AGAIN_MS = 100;

/** What a process wrote before it went is read a little after it has gone. */
const LAST_WORDS_MS = 50;

interface Member {
  readonly child: Child;
  readonly said: Set<FromClient["kind"]>;
  waker: NodeJS.Timeout | undefined;
}

export class Crew implements AsyncDisposable {
  readonly tenures: Tenure[] = [];
  readonly stalls: Stall[] = [];
  readonly refusals: Record<string, number> = {};
  stops = 0;
  readonly #members: readonly Member[];
  readonly #waiting = new Set<() => void>();

  constructor(orders: readonly ClientOrders[]) {
    this.#members = orders.map((order) => this.#start(order));
  }

  get size(): number {
    return this.#members.length;
  }

  get working(): number {
    return this.#members.filter(({ said }) => !said.has("done")).length;
  }

  tell(word: ToClient): void {
    for (const { child } of this.#members) child.send(word);
  }

  /** Resolves when all have said so; fails when one has gone without. */
  async all(kind: "ready" | "done"): Promise<void> {
    await this.#until(() => this.#members.every(({ said }) => said.has(kind)));
  }

  /** All close their locks and go. */
  async leave(): Promise<void> {
    this.tell({ kind: "leave" });
    const exits = await Promise.all(this.#members.map(({ child }) => child.waitForExit()));
    const failed = exits.findIndex(({ code }) => code !== 0);
    if (failed >= 0) throw new Error(this.#members[failed]?.child.howItEnded());
  }

  /** SIGSTOP from outside, whatever it is doing. */
  stop(client: number, forMs: number): void {
    const member = this.#members[client];
    if (member === undefined || member.waker !== undefined) return;
    this.stops++;
    member.child.signal("SIGSTOP");
    this.#wakeLater(member, forMs, "once");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { waker } of this.#members) clearTimeout(waker);
    await Promise.all(this.#members.map(({ child }) => child.kill()));
  }

  #start(order: ClientOrders): Member {
    const member: Member = {
      said: new Set(),
      waker: undefined,
      child: startChild({
        command: process.execPath,
        args: [program, JSON.stringify(order)],
        name: `client ${order.client}`,
        onMessage: (word) => this.#hear(member, word as FromClient),
      }),
    };
    void member.child.waitForExit().then(() => this.#look());
    return member;
  }

  #hear(member: Member, word: FromClient): void {
    if (word.kind === "news") {
      this.tenures.push(...word.tenures);
      this.stalls.push(...word.stalls);
      for (const [code, count] of Object.entries(word.refusals)) this.refusals[code] = (this.refusals[code] ?? 0) + count;
    } else if (word.kind === "asleep") {
      this.stops++;
      this.#wakeLater(member, word.forMs, "until awake");
    } else if (word.kind === "awake") {
      clearTimeout(member.waker);
      member.waker = undefined;
    } else {
      member.said.add(word.kind);
      this.#look();
    }
  }

  #wakeLater(member: Member, inMs: number, how: "once" | "until awake"): void {
    clearTimeout(member.waker);
    member.waker = setTimeout(() => {
      member.waker = undefined;
      if (!member.child.signal("SIGCONT")) return;
      if (how === "until awake") this.#wakeLater(member, AGAIN_MS, how);
    }, inMs);
  }

  #look(): void {
    for (const look of this.#waiting) look();
  }

  #until(isSo: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        const gone = this.#members.find(({ child }) => !child.alive);
        if (gone === undefined && !isSo()) return;
        this.#waiting.delete(look);
        if (isSo()) resolve();
        else setTimeout(() => reject(new Error(gone?.child.howItEnded())), LAST_WORDS_MS);
      };
      this.#waiting.add(look);
      look();
    });
  }
}
