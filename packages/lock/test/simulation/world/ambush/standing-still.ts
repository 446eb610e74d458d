// Nearly all processes stop at one moment, at whatever place in the queues they are, and go on
// much later. Those that run must have what they wait for after one look.
import type { Ambush } from "../scenario.js";
import { FROM_ONE, type Scene } from "./scene.js";

const TIMES_LONGER = 8;
const MOST_RUNNING = 2;

export function standingStill(scene: Scene, { node, lastsMs }: Ambush): void {
  const running = 1 + (node % MOST_RUNNING);
  scene.log(`standing still: all but ${running} of the processes stop`);
  for (let client = running; client < scene.scenario.clients; client++)
    scene.inflict("stop client", { node, client, lastsMs: TIMES_LONGER * lastsMs, strength: FROM_ONE });
  scene.counts["standing still"]++;
}
