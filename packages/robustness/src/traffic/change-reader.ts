// Reads the stream of changes of one gateway for as long as a run lasts, over every failover.
import { createGatewayClient } from "@palisade/client";
import type { Entry } from "../history/history.js";

interface ChangeReaderSettings {
  readonly url: string;
  readonly apiKey: string;
  readonly prefix: string;
}

export class ChangeReader implements AsyncDisposable {
  /** What it was told, in this order. */
  readonly changes: Entry[] = [];
  readonly #over = new AbortController();
  readonly #reading: Promise<void>;
  /** Why the stream ended before its time. */
  failure: Error | undefined;

  constructor(settings: ChangeReaderSettings) {
    this.#reading = this.#read(settings).catch((error: Error) => {
      this.failure = error;
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#over.abort();
    await this.#reading;
  }

  async #read({ url, apiKey, prefix }: ChangeReaderSettings): Promise<void> {
    const client = createGatewayClient({ url, apiKey, retry: { firstPauseMs: 50, longestPauseMs: 500 } });
    for await (const { resource, rev, token, seq, op } of client.changes({ prefix, after: 0, signal: this.#over.signal }))
      this.changes.push({ resource, rev, token, seq: seq ?? 0, op });
  }
}
