// Waits until a server answers, and only believes the very process that was started: another
// server may sit on the port. Moves its wall clock, and checks that it shows that. No client
// library: its reconnects would hide what is going on.
import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { WallClock } from "../clock/wall-clock.js";
import type { Address } from "./provider.js";

export interface Readiness extends Address {
  /** What the server's INFO must contain, to be the one that was started. */
  readonly signature: string;
  /** Why waiting is pointless by now, or undefined. */
  readonly failure: () => string | undefined;
}

const FIRST_LOOK_MS = 4;
const POLL_MS = 3;
const READY_TIMEOUT_MS = 20_000;
// Another program on the port may not answer; the next look tells if the server has given up.
const ANSWER_TIMEOUT_MS = 1_000;

/** Resolves when the server answers PING and has loaded its data. */
export async function untilReady({ host, port, signature, failure }: Readiness): Promise<void> {
  const giveUpAt = performance.now() + READY_TIMEOUT_MS;
  await delay(FIRST_LOOK_MS);
  for (;;) {
    const why = failure();
    if (why !== undefined) throw new Error(why);
    // INFO is answered while a server loads its log, PING is not: together they tell which server
    // it is and whether it is ready.
    const answer = await ask({ host, port }, "INFO server\r\nPING\r\n", {
      complete: /\r\n(\+PONG|-[A-Z]+ [^\r]*)\r\n$/,
      timeoutMs: ANSWER_TIMEOUT_MS,
    });
    if (answer.includes(signature) && answer.includes("+PONG")) return;
    if (performance.now() > giveUpAt)
      throw new Error(`not ready after ${READY_TIMEOUT_MS} ms; it answered ${JSON.stringify(answer.slice(0, 200))}`);
    await delay(POLL_MS);
  }
}

/** What the server's wall clock shows. */
async function serverTimeMs(server: Address): Promise<number> {
  const answer = await ask(server, "TIME\r\n", { complete: /\r\n\d+\r\n\$\d+\r\n\d+\r\n$/, timeoutMs: READY_TIMEOUT_MS });
  const [, seconds, microseconds] = /\r\n(\d+)\r\n\$\d+\r\n(\d+)\r\n$/.exec(answer) ?? [];
  if (seconds === undefined || microseconds === undefined) throw new Error(`no answer to TIME but ${JSON.stringify(answer)}`);
  return Number(seconds) * 1_000 + Number(microseconds) / 1_000;
}

interface Expectation {
  readonly complete: RegExp;
  readonly timeoutMs: number;
}

function ask({ host, port }: Address, commands: string, { complete, timeoutMs }: Expectation): Promise<string> {
  return new Promise((resolve) => {
    let answer = "";
    const socket = connect({ port, host });
    socket.setEncoding("utf8").setTimeout(timeoutMs, () => socket.destroy());
    socket.on("connect", () => socket.write(commands));
    socket.on("data", (text: string) => {
      answer += text;
      if (complete.test(answer)) socket.destroy();
    });
    // Refused is an answer too: not yet.
    socket.on("error", (cause) => {
      answer = cause.message;
    });
    socket.on("close", () => resolve(answer));
  });
}

// Moves the wall clock of a Redis server, and checks that the server shows it.
const TOLERANCE_MS = 5_000;

/** A clock, or why there is none that can be moved, as the end of "the clock of n1 …". */
export type ServerClock = WallClock | { readonly fixed: string };

export const realClock: ServerClock = { fixed: 'is real: start the fleet with clock "shiftable" to move it' };

export function serverClock(clock: WallClock | { readonly missing: string }): ServerClock {
  return "missing" in clock ? { fixed: `cannot be moved here: ${clock.missing}` } : clock;
}

interface ClockOwner {
  readonly name: string;
  readonly clock: ServerClock;
  /** Of a server that answers; a paused or killed one looks at its clock when it runs again. */
  readonly awakeAt: Address | undefined;
}

/** Moves it by so much from where it is now. */
export async function shiftClock({ name, clock, awakeAt }: ClockOwner, byMs: number): Promise<void> {
  if ("fixed" in clock) throw new Error(`the clock of ${name} ${clock.fixed}`);
  clock.shift(byMs);
  if (awakeAt === undefined) return;
  const expected = Date.now() + clock.offsetMs;
  const shown = await serverTimeMs(awakeAt);
  if (Math.abs(shown - expected) > TOLERANCE_MS) {
    throw new Error(`the clock of ${name} did not move: it shows ${shown}, expected about ${expected}`);
  }
}
