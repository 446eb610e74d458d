// Hears the releases that one node publishes, on a connection of its own that is opened when somebody first listens. An accelerator only: whoever waits also has
// the time to live, so nothing here is retried with effort and nothing fails a caller.

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
  #wanted = new Set<string>();
  #unwanted = new Set<string>();
  /** Why nothing is heard, for the doctor. */
  trouble: string | undefined;

  constructor(settings: SubscriptionSettings) {
    this.#settings = settings;
  }

  /** Takes a seat among those who wait for the resource, until the returned function is called. */
  add(resource: string, seat: number, listener: ReleaseListener): () => void {
    if (this.#isClosed) return () => {};
    this.#client ??= this.#open();
    const { keys } = this.#settings;
    const [common, ours] = [keys.lock(resource), keys.seat(resource, seat)];
    // In the common channel we only want to be counted. First, so that whoever hears that it listens is counted.
    const counted = { released() {}, listening() {} };
    this.#join(common, counted);
    this.#join(ours, listener);
    return () => {
      this.#leave(ours, listener);
      this.#leave(common, counted);
    };
  }

  close(): void {
    this.#isClosed = true;
    this.#channels.clear();
    this.#client?.disconnect();
  }

  #join(name: string, listener: ReleaseListener): void {
    const channel = this.#channels.get(name);
    if (channel === undefined) {
      this.#channels.set(name, { listeners: new Set([listener]), isHeard: false });
      this.#want(name);
      return;
    }
    channel.listeners.add(listener);
    if (!channel.isHeard) return;
    queueMicrotask(() => {
      if (channel.listeners.has(listener)) listener.listening();
    });
  }

  #leave(name: string, listener: ReleaseListener): void {
    const channel = this.#channels.get(name);
    if (!channel?.listeners.delete(listener) || channel.listeners.size > 0) return;
    this.#channels.delete(name);
    this.#unwant(name);
  }

  #open(): Link {
    const client = this.#settings.openLink(this.#settings.source, this.#settings);
    client.on("error", (error: unknown) => {
      this.trouble = causeOf(error);
    });
    client.on("ready", () => this.#ready());
    client.on("close", () => this.#lost());
    client.on("message", (name: string, news: string) => this.#released(name, news));
    client.connect().catch((error: unknown) => {
      this.trouble = causeOf(error);
    });
    return client;
  }

  #ready(): void {
    this.#isReady = true;
    this.trouble = undefined;
    this.#wanted = new Set();
    this.#unwanted = new Set();
    for (const name of this.#channels.keys()) this.#want(name);
  }

  #lost(): void {
    this.#isReady = false;
    for (const channel of this.#channels.values()) channel.isHeard = false;
  }

  #released(name: string, news: string): void {
    const channel = this.#channels.get(name);
    // Somebody else's message on our channel is no news.
    const [, rank, listeners] = /^(\d{1,2}) (\d{1,9})$/.exec(news) ?? [];
    if (channel === undefined || rank === undefined) return;
    const told = { rank: Number(rank), listeners: Math.max(1, Number(listeners)) };
    for (const listener of [...channel.listeners]) listener.released(told);
  }

  // Gathered per turn, and in pairs that cancel out: waiters of one resource come and go much faster than a subscription is worth.
  #want(name: string): void {
    if (this.#unwanted.delete(name)) {
      queueMicrotask(() => this.#confirmed(name));
      return;
    }
    this.#wanted.add(name);
    this.#schedule();
  }

  #unwant(name: string): void {
    if (this.#wanted.delete(name)) return;
    this.#unwanted.add(name);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isReady && this.#wanted.size + this.#unwanted.size === 1) process.nextTick(() => this.#tell());
  }

  #tell(): void {
    if (!this.#isReady || this.#client === undefined) return;
    const [wanted, unwanted] = [[...this.#wanted], [...this.#unwanted]];
    this.#wanted.clear();
    this.#unwanted.clear();
    const complain = (error: unknown): void => {
      this.trouble = causeOf(error);
    };
    if (unwanted.length > 0) this.#client.unsubscribe(...unwanted).catch(complain);
    if (wanted.length === 0) return;
    this.#client.subscribe(...wanted).then(() => {
      for (const name of wanted) this.#confirmed(name);
    }, complain);
  }

  #confirmed(name: string): void {
    const channel = this.#channels.get(name);
    if (channel === undefined || !this.#isReady) return;
    channel.isHeard = true;
    for (const listener of [...channel.listeners]) listener.listening();
  }
}
