// Several faults at once, at the worst moment. A rule that matters only when rare events coincide
// is hardly ever hurt by chance; an ambush waits for the moment. It uses the ordinary faults.
import type { Executed } from "../../server/sim-server.js";
import type { Ambush, AmbushKind } from "../scenario.js";
import { belated } from "./belated.js";
import { halfWay } from "./half-way.js";
import { leftBehind } from "./left-behind.js";
import { Scene, type SceneSettings } from "./scene.js";
import { twoFounders } from "./two-founders.js";

const lie: Readonly<Record<AmbushKind, (scene: Scene, ambush: Ambush) => void>> = {
  "half-way": halfWay,
  "left behind": leftBehind,
  belated,
  "two founders": twoFounders,
};

export class Ambushes {
  readonly #scene: Scene;

  constructor(settings: SceneSettings) {
    this.#scene = new Scene(settings);
    const { timeline, scenario } = settings;
    for (const ambush of scenario.ambushes)
      if (ambush.atMs < scenario.stormMs) timeline.at(ambush.atMs, () => lie[ambush.kind](this.#scene, ambush));
  }

  /** How many struck. */
  get counts(): Readonly<Record<AmbushKind, number>> {
    return this.#scene.counts;
  }

  /** Called after every script, before its answer is sent. */
  executed(executed: Executed): void {
    this.#scene.executed(executed);
  }
}
