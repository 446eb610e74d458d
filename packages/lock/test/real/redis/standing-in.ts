// An address behind which one server may take the place of another, as after a failover. Not a
// test.
import { FaultProxy } from "@palisade/testkit";

interface Upstream {
  readonly host: string;
  readonly port: number;
}

export interface Address extends AsyncDisposable {
  readonly url: string;
  /** From now on this server answers; connections to the other are cut. */
  standIn(upstream: Upstream): Promise<void>;
}

export async function standingIn(upstream: Upstream): Promise<Address> {
  const proxy = await FaultProxy.start({ upstream });
  return {
    url: `redis://${proxy.host}:${proxy.port}`,
    async standIn(next) {
      await proxy.serverUp(next);
      proxy.cut();
    },
    [Symbol.asyncDispose]: () => proxy.stop(),
  };
}
