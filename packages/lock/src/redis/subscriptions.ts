// Receives what one node tells this process of the resources that it waits for: in one inbox, on a
// connection of its own that is opened for the first waiter and kept. Best effort: a waiter also
// wakes when the time to live is over, so nothing here fails a caller.

import type { NodeSource } from "../options/node-source.js";
import type { ReleaseListener } from "../protocol/node.js";
import { causeOf } from "./causes.js";
import type { Keys } from "./keys.js";
import type { ConnectSettings, Link, OpenLink } from "./link.js";

/** Of a message, even for the first; from 2 on the wait is named in so many digits (queue.lua). */
const RANKS = "0123";
const TIME_DIGITS = 15;

interface SubscriptionSettings extends ConnectSettings {
  readonly source: NodeSource;
  readonly openLink: OpenLink;
  readonly keys: Keys;
}

export class Subscriptions {
  readonly #settings: SubscriptionSettings;
  readonly #listeners = new Map<string, Set<ReleaseListener>>();
  #client: Link | undefined;
  #isReady = false;
  #isAsked = false;
  /** The node confirmed the inbox on the connection that is open now. */
  #isHeard = false;
  #isClosed = false;
  /** Why nothing is heard, for the doctor. */
  trouble: string | undefined;

  constructor(settings: SubscriptionSettings) {
    this.#settings = settings;
  }

  /** What is told of `<ticket> <resource>`, until the returned function is called. */
  add(place: string, listener: ReleaseListener): () => void {
    if (this.#isClosed) return () => {};
    this.#client ??= this.#open();
    const listeners = this.#listeners.get(place) ?? new Set();
    this.#listeners.set(place, listeners.add(listener));
    if (this.#isHeard) listener.listening();
    else this.#subscribe();
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#listeners.get(place) === listeners) this.#listeners.delete(place);
    };
  }

  close(): void {
    this.#isClosed = true;
    this.#lost();
    this.#listeners.clear();
    this.#client?.disconnect();
  }

  #open(): Link {
    const client = this.#settings.openLink(this.#settings.source, this.#settings);
    client.on("error", (error: unknown) => {
      this.trouble = causeOf(error);
    });
    client.on("ready", () => {
      this.#isReady = true;
      this.trouble = undefined;
      this.#subscribe();
    });
    client.on("close", () => this.#lost());
    client.on("message", (_: string, message: string) => this.#told(message));
    client.connect().catch((error: unknown) => {
      this.trouble = causeOf(error);
    });
    return client;
  }

  /** Again for every new waiter where the server refused it: a right may have been given since. */
  #subscribe(): void {
    if (!this.#isReady || this.#isAsked) return;
    this.#isAsked = true;
    this.#client?.subscribe(this.#settings.keys.inboxChannel).then(
      () => {
        if (!this.#isReady) return;
        this.#isHeard = true;
        for (const listener of this.#everyone()) listener.listening();
      },
      (error: unknown) => {
        this.#isAsked = false;
        this.trouble = causeOf(error);
      },
    );
  }

  #lost(): void {
    const wasHeard = this.#isHeard;
    this.#isReady = false;
    this.#isAsked = false;
    this.#isHeard = false;
    if (wasHeard) for (const listener of this.#everyone()) listener.deaf();
  }

  // Any client may publish on the channel: other messages are ignored.
  #told(message: string): void {
    const rank = RANKS.indexOf(message.slice(0, 1));
    if (rank < 0) return;
    const end = rank < 2 ? 1 : 1 + TIME_DIGITS;
    const askedAtMs = rank < 2 ? undefined : Number(message.slice(1, end));
    for (const listener of [...(this.#listeners.get(message.slice(end)) ?? [])])
      listener.released(rank % 2 === 0 ? "first" : "backup", askedAtMs);
  }

  #everyone(): readonly ReleaseListener[] {
    return [...this.#listeners.values()].flatMap((listeners) => [...listeners]);
  }
}
