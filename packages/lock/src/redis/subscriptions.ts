// Receives the releases that one node publishes, on a connection of its own that is opened for the
// first waiter. Best effort: a waiter also wakes when the time to live is over, so nothing here
// fails a caller.

import type { NodeSource } from "../options/node-source.js";
import type { ReleaseListener } from "../protocol/node.js";
import { causeOf } from "./causes.js";
import type { Keys } from "./keys.js";
import type { ConnectSettings, Link, OpenLink } from "./link.js";

export interface SubscriptionSettings extends ConnectSettings {
  readonly source: NodeSource;
  readonly openLink: OpenLink;
  readonly keys: Keys;
}

interface Channel {
  readonly listeners: Set<ReleaseListener>;
  /** The node confirmed it on the connection that is open now. */
  isHeard: boolean;
}

export class Subscriptions {
  readonly #settings: SubscriptionSettings;
  readonly #channels = new Map<string, Channel>();
  #client: Link | undefined;
  #isReady = false;
  #isClosed = false;
  #toSubscribe = new Set<string>();
  #toUnsubscribe = new Set<string>();
  /** Why nothing is heard, for the doctor. */
  trouble: string | undefined;

  constructor(settings: SubscriptionSettings) {
    this.#settings = settings;
  }

  /** Waits in a wake slot of the resource until the returned function is called. */
  add(resource: string, wakeSlot: number, listener: ReleaseListener): () => void {
    if (this.#isClosed) return () => {};
    this.#client ??= this.#open();
    const { keys } = this.#settings;
    const [common, ours] = [keys.lock(resource), keys.wakeSlot(resource, wakeSlot)];
    // On the common channel waiters are only counted. Joined first, so that a waiter that knows it
    // is listening is counted.
    const counted = { released() {}, listening() {}, deaf() {} };
    this.#join(common, counted);
    this.#join(ours, listener);
    return () => {
      this.#leave(ours, listener);
      this.#leave(common, counted);
    };
  }

  close(): void {
    this.#isClosed = true;
    this.#lost();
    this.#channels.clear();
    this.#client?.disconnect();
  }

  #join(name: string, listener: ReleaseListener): void {
    const channel = this.#channels.get(name);
    if (channel === undefined) {
      this.#channels.set(name, { listeners: new Set([listener]), isHeard: false });
      this.#subscribe(name);
      return;
    }
    channel.listeners.add(listener);
    if (!channel.isHeard) return;
    queueMicrotask(() => {
      if (channel.isHeard && channel.listeners.has(listener)) listener.listening();
    });
  }

  #leave(name: string, listener: ReleaseListener): void {
    const channel = this.#channels.get(name);
    if (!channel?.listeners.delete(listener) || channel.listeners.size > 0) return;
    this.#channels.delete(name);
    this.#unsubscribe(name);
  }

  #open(): Link {
    const client = this.#settings.openLink(this.#settings.source, this.#settings);
    client.on("error", (error: unknown) => {
      this.trouble = causeOf(error);
    });
    client.on("ready", () => this.#ready());
    client.on("close", () => this.#lost());
    client.on("message", (name: string, message: string) => this.#released(name, message));
    client.connect().catch((error: unknown) => {
      this.trouble = causeOf(error);
    });
    return client;
  }

  #ready(): void {
    this.#isReady = true;
    this.trouble = undefined;
    this.#toSubscribe = new Set();
    this.#toUnsubscribe = new Set();
    for (const name of this.#channels.keys()) this.#subscribe(name);
  }

  #lost(): void {
    this.#isReady = false;
    for (const channel of this.#channels.values()) {
      if (!channel.isHeard) continue;
      channel.isHeard = false;
      for (const listener of [...channel.listeners]) listener.deaf();
    }
  }

  #released(name: string, message: string): void {
    const channel = this.#channels.get(name);
    // Any client may publish on the channel: other messages are ignored.
    const [, rank, listeners] = /^(\d{1,2}) (\d{1,9})$/.exec(message) ?? [];
    if (channel === undefined || rank === undefined) return;
    const notice = { rank: Number(rank), listeners: Math.max(1, Number(listeners)) };
    for (const listener of [...channel.listeners]) listener.released(notice);
  }

  // Gathered per turn, and in pairs that cancel out: waiters of one resource come and go faster
  // than subscriptions are made.
  #subscribe(name: string): void {
    if (this.#toUnsubscribe.delete(name)) {
      queueMicrotask(() => this.#confirmed(name));
      return;
    }
    this.#toSubscribe.add(name);
    this.#schedule();
  }

  #unsubscribe(name: string): void {
    if (this.#toSubscribe.delete(name)) return;
    this.#toUnsubscribe.add(name);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isReady && this.#toSubscribe.size + this.#toUnsubscribe.size === 1) process.nextTick(() => this.#flush());
  }

  #flush(): void {
    if (!this.#isReady || this.#client === undefined) return;
    const [joined, left] = [[...this.#toSubscribe], [...this.#toUnsubscribe]];
    this.#toSubscribe.clear();
    this.#toUnsubscribe.clear();
    const complain = (error: unknown): void => {
      this.trouble = causeOf(error);
    };
    if (left.length > 0) this.#client.unsubscribe(...left).catch(complain);
    if (joined.length === 0) return;
    this.#client.subscribe(...joined).then(() => {
      for (const name of joined) this.#confirmed(name);
    }, complain);
  }

  #confirmed(name: string): void {
    const channel = this.#channels.get(name);
    if (channel === undefined || !this.#isReady) return;
    channel.isHeard = true;
    for (const listener of [...channel.listeners]) listener.listening();
  }
}
