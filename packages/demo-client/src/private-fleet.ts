// Five Redis masters of an act's own, to be broken, and ways to them of each worker's own, for networks that break for one and not for another.
// Decides no fault.
import { type FaultProxy, type FleetWay, RedisFleet, type RedisNode } from "@palisade/testkit";
import { startGateway } from "./gateway-process.js";
import type { Story } from "./story.js";
import type { Surroundings } from "./worker-protocol.js";

export interface Way {
  /** To the nodes n1 … n5. */
  readonly proxies: readonly FaultProxy[];
  readonly surroundings: Pick<Surroundings, "redisUrls">;
  /** From now on this worker, and nobody else, cannot reach these nodes. */
  losesSightOf(...names: readonly string[]): Promise<void>;
}

export class PrivateFleet {
  readonly #story: Story;
  readonly #fleet: RedisFleet;

  private constructor(story: Story, fleet: RedisFleet) {
    this.#story = story;
    this.#fleet = fleet;
  }

  static async start(story: Story): Promise<PrivateFleet> {
    return new PrivateFleet(story, story.own(await RedisFleet.start({ nodes: 5, appendfsync: "always" })));
  }

  node(name: string): RedisNode {
    return this.#fleet.node(name);
  }

  get urls(): readonly string[] {
    return this.#fleet.urls;
  }

  /** A worker's own part of the network. */
  async wayOf(worker: string): Promise<Way> {
    const way: FleetWay = await this.#fleet.anotherWay();
    const names = this.#fleet.nodes.map(({ name }) => name);
    const story = this.#story;
    return {
      proxies: way.proxies,
      surroundings: { redisUrls: way.urls },
      async losesSightOf(...lost) {
        await Promise.all(lost.map((name) => way.proxies[names.indexOf(name)]?.partition()));
        story.step("breaks", "lock", { text: `${worker} cannot reach ${lost.join(", ")} any more` });
      },
    };
  }

  /** A gateway that asks these nodes whether a token was issued. */
  async gateway(): Promise<Pick<Surroundings, "gatewayUrl" | "apiKey">> {
    // The gateway's tables are in the stage's own database, unless the stage was given a gateway; then any database of ours will do.
    const gateway = this.#story.own(await startGateway({ databaseUrl: this.#story.stage.databaseUrl, redisUrls: this.urls }));
    return { gatewayUrl: gateway.url, apiKey: undefined };
  }
}
