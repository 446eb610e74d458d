// Text, numbers and times as they are shown. Names and labels are chosen by others: characters that
// steer, reorder or hide what stands beside them are shown as their numbers.
import type { Trouble } from "../src/messages.js";

const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

export function printable(text: string): string {
  return text.replace(UNSAFE, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);
}

/** 42 s, 4 min 10 s, 3 h 5 min, 12 days. */
export function duration(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`;
  return `${Math.floor(seconds / 86_400)} days`;
}

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });

/** The time of day; of another day with its date. */
export function timeOf(at: number): string {
  const isToday = new Date(at).toDateString() === new Date().toDateString();
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

export function isTrouble(given: object): given is Trouble {
  return "trouble" in given;
}

/** What is known. */
export function unlessTrouble<Known extends object>(given: Known | Trouble | undefined): Known | undefined {
  return given === undefined || isTrouble(given) ? undefined : given;
}
