// Text, numbers and times as they are shown. Names and labels are chosen by others: characters that
// steer, reorder or hide what stands beside them are shown as their numbers.

import type { Trouble } from "../src/page/messages.js";

const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

export function printable(text: string): string {
  return text.replace(UNSAFE, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);
}

/** 9.8 s, 42 s, 4 min 10 s, 3 h 5 min, 12 days. */
export function duration(ms: number): string {
  if (ms < 0) return "0 s";
  if (ms < 10_000) return `${(Math.floor(ms / 100) / 10).toFixed(1)} s`;
  if (ms < 60_000) return `${Math.floor(ms / 1_000)} s`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ${Math.floor((ms % 60_000) / 1_000)} s`;
  if (ms < 172_800_000) return `${Math.floor(ms / 3_600_000)} h ${Math.floor((ms % 3_600_000) / 60_000)} min`;
  return `${Math.floor(ms / 86_400_000)} days`;
}

/** The same in whole seconds, for what changes before one's eyes. */
export function wholeDuration(ms: number): string {
  return ms < 60_000 ? `${Math.max(0, Math.floor(ms / 1_000))} s` : duration(ms);
}

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });

/** The time of day; of another day with its date. */
export function timeOf(at: number, now = Date.now()): string {
  const isToday = new Date(at).toDateString() === new Date(now).toDateString();
  return isToday ? clock.format(at) : `${day.format(at)}, ${clock.format(at)}`;
}

const whole = new Intl.NumberFormat("en");

/** 10,000 with a thin space in place of the comma. */
export function count(value: number): string {
  return whole.format(value).replaceAll(",", "\u202f");
}

export function plural(value: number, one: string, many: string): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** Why a write was refused, in words. */
const reasons: Readonly<Record<string, string>> = {
  fencing_token_stale: "old token",
  fencing_token_unissued: "token never issued",
  sequence_out_of_order: "sequence out of order",
  etag_mismatch: "document has changed",
  verification_unavailable: "lock could not be asked",
  contention: "contention",
  patch_failed: "patch does not fit",
  document_too_large: "document too large",
  idempotency_key_reused: "key used for another write",
  function_failed: "function failed",
};

export function reasonFor(code: string): string {
  return reasons[code] ?? code;
}

export function isTrouble(given: object): given is Trouble {
  return "trouble" in given;
}
