// What scenarios share: kinds of acts, claims about a late write, and five Redis masters of an act's
// own, to be broken, with a network to them for each worker, which can break for one and not for another.
import { type FaultProxy, RedisFleet, type RedisNode } from "@palisade/testkit";
import type { Act, ActRun, Differing } from "../engine/act.js";
import { startGateway } from "../engine/environment.js";
import type { Document, Granted, WriteResult } from "../worker/protocol.js";

/** How an act ends in which worker 1 writes late, after worker 2 has taken over. */
export interface Outcome {
  readonly late: WriteResult;
  readonly stored: Document | null;
}

/** The leases of worker 1 and of worker 2. */
export interface Leases {
  readonly older: Granted;
  readonly newer: Granted;
}

/** Of an act that is about the lock only. */
export function lockOnly(title: string, play: Act["play"]): Act {
  return { title, actors: ["worker 1", "worker 2", "lock"], route: "gateway", play };
}

export function fenced(title: string, play: Act["play"]): Act {
  return { title, actors: ["worker 1", "worker 2", "lock", "gateway", "store"], route: "gateway", play };
}

export function unfenced(title: string, play: Act["play"]): Act {
  return { title, actors: ["worker 1", "worker 2", "lock", "store"], route: "postgres", play };
}

/** With the fence and without it: the lock itself has kept the two leases apart. */
export function expectTurns(act: ActRun, { older, newer }: Leases): void {
  act.expect("worker 2 got the lock only when worker 1's lease was over", newer.grantedAt >= older.validUntilAt);
}

export function expectRefusal(act: ActRun, { late, stored }: Outcome, claim = "worker 1 is told that its token is stale"): void {
  act.expect(claim, codeOf(late), "fencing_token_stale");
  act.expect("what is stored is worker 2's", stored?.by, "worker 2");
}

export function expectLoss(act: ActRun, { late, stored }: Outcome, claim = "worker 1's late write is stored"): void {
  act.expectDamage(claim, late.ok);
  act.expectDamage("worker 2's update is lost", stored?.by, "worker 1");
}

/** The code of a refusal, to be compared with the one that a scenario claims. */
export function codeOf(answer: { readonly ok: true } | { readonly ok: false; readonly code: string }): string {
  return answer.ok ? "ok" : answer.code;
}

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
    return new PrivateFleet(act, act.use(await RedisFleet.start({ nodes: 5, appendfsync: "always" })));
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
    const gateway = this.#act.use(await startGateway({ databaseUrl, redisUrls: this.urls.slice(0, size) }));
    return { gatewayUrl: gateway.url };
  }
}
