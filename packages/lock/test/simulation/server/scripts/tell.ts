// lua/tell.lua: tell who waits for a lock that it is free.
import type { ScriptCall } from "../script-call.js";

const SEATS = 16;

/** How many wait. */
export function tell({ host }: ScriptCall, lock: string, turn: number): number {
  const waiting = host.listeners(lock);
  if (waiting === 0 || turn === 0) return waiting;
  const tag = lock.indexOf("}") + 2;
  let told = 0;
  for (let index = 0; index < SEATS && told < 2; index++) {
    const seat = (turn + index) % SEATS;
    const channel = `${lock.slice(0, tag)}seat:${seat}:${lock.slice(tag + "lock:".length)}`;
    const sitting = host.listeners(channel);
    if (sitting > 0) host.publish(channel, `${told++} ${sitting}`);
  }
  return waiting;
}
