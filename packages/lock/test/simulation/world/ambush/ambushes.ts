// Several faults at the worst moment together. Chance alone hardly ever brings about what it takes to hurt a rule that only matters when rare things coincide; an ambush
// waits for its moment and then does them at once. It knows what happens on the nodes, and uses nothing but the faults that there are.
import type { Executed } from "../../server/sim-server.js";
import type { Ambush, AmbushKind } from "../scenario.js";
import { belated } from "./belated.js";
import { Ground, type Terrain } from "./ground.js";
import { halfWay } from "./half-way.js";
import { leftBehind } from "./left-behind.js";
import { twoFounders } from "./two-founders.js";

const lie: Readonly<Record<AmbushKind, (ground: Ground, ambush: Ambush) => void>> = {
  "half-way": halfWay,
  "left behind": leftBehind,
  belated,
  "two founders": twoFounders,
};

export class Ambushes {
  readonly #ground: Ground;

  constructor(terrain: Terrain) {
    this.#ground = new Ground(terrain);
    const { timeline, scenario } = terrain;
    for (const ambush of scenario.ambushes)
      if (ambush.atMs < scenario.stormMs) timeline.at(ambush.atMs, () => lie[ambush.kind](this.#ground, ambush));
  }

  /** How many struck. */
  get counts(): Readonly<Record<AmbushKind, number>> {
    return this.#ground.counts;
  }

  /** A script was executed; its answer has not left yet. */
  executed(executed: Executed): void {
    this.#ground.executed(executed);
  }
}
