// Five Redis masters of an act's own, to be broken, and a network to them for each worker, which
// can break for one worker and not for another.
import { type FaultProxy, RedisFleet, type RedisNode } from "@palisade/testkit";
import type { ActRun, Differing } from "../engine/act-run.js";
import { startGateway } from "../engine/environment.js";

export interface Network {
  /** To the nodes n1 … n5. */
  readonly proxies: readonly FaultProxy[];
  readonly redisUrls: readonly string[];
  /** From now on this worker cannot reach these nodes; others can. */
  loses(...names: readonly string[]): Promise<void>;
}

export class PrivateFleet {
  readonly #act: ActRun;
  readonly #fleet: RedisFleet;

  private constructor(act: ActRun, fleet: RedisFleet) {
    this.#act = act;
    this.#fleet = fleet;
  }

  static async start(act: ActRun): Promise<PrivateFleet> {
    return new PrivateFleet(act, act.own(await RedisFleet.start({ nodes: 5, appendfsync: "always" })));
  }

  node(name: string): RedisNode {
    return this.#fleet.node(name);
  }

  get urls(): readonly string[] {
    return this.#fleet.urls;
  }

  async networkOf(worker: string): Promise<Network> {
    const { proxies, urls } = await this.#fleet.anotherWay();
    const names = this.#fleet.nodes.map(({ name }) => name);
    const act = this.#act;
    return {
      proxies,
      redisUrls: urls,
      async loses(...lost) {
        await Promise.all(lost.map((name) => proxies[names.indexOf(name)]?.partition()));
        act.step("breaks", "lock", { text: `${worker} cannot reach ${lost.join(", ")} any more` });
      },
    };
  }

  /**
   * A gateway that asks the first so many nodes whether a token was issued, over the database of
   * the demo.
   */
  async gateway(size = this.urls.length): Promise<Differing> {
    const { databaseUrl } = this.#act.environment;
    const gateway = this.#act.own(await startGateway({ databaseUrl, redisUrls: this.urls.slice(0, size) }));
    return { gatewayUrl: gateway.url };
  }
}
