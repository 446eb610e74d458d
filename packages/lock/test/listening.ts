// What tests look at: events of the lock's channels, and errors. Not a test.
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { channelNames } from "#lock/protocol/events.js";

/** Collects what is said on a channel and is of interest, until it goes out of scope. */
export function listen<Event>(
  channel: keyof typeof channelNames,
  isOurs: (event: Event) => boolean = () => true,
): { readonly events: Event[] } & Disposable {
  const events: Event[] = [];
  const onEvent = (message: unknown): void => {
    if (isOurs(message as Event)) events.push(message as Event);
  };
  subscribe(channelNames[channel], onEvent);
  return { events, [Symbol.dispose]: () => unsubscribe(channelNames[channel], onEvent) };
}

/** The error with which it rejects. */
export async function failure(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => {
      throw new Error("it was expected to fail, and did not");
    },
    (error: unknown) => error,
  );
}

/** Resolves when it has aborted, even if that was before. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
