// The files of deploy/ha fit each other: what compose.yaml sets is what the configurations take,
// and its gateways have settings that the gateway understands. `npm run faults -- --ha` starts
// Patroni, HAProxy and pgbouncer with them.
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";

const read = (file: string): string => readFileSync(new URL(`../../deploy/ha/${file}`, import.meta.url), "utf8");

interface Service {
  readonly environment?: Readonly<Record<string, string>>;
  readonly command?: readonly string[];
}
const { services } = parse(read("compose.yaml"), { merge: true }) as { readonly services: Readonly<Record<string, Service>> };
const settings = readFileSync(new URL("../../docs/settings.md", import.meta.url), "utf8");

describe("deploy/ha", () => {
  test("compose.yaml sets every variable that haproxy.cfg takes, and no other", () => {
    const taken = new Set([...read("haproxy.cfg").matchAll(/\$\{(\w+)\}/g)].map(([, name]) => name));
    expect(Object.keys(services.haproxy?.environment ?? {}).sort()).toEqual([...taken].sort());
  });

  test("HAProxy knows each Postgres, and ends the connections to one that is no primary any more", () => {
    const known = [...read("haproxy.cfg").matchAll(/^ +server (\S+)/gm)].map(([, name]) => name);
    expect(known).toEqual(Object.keys(services).filter((name) => name.startsWith("postgres-")));
    expect(read("haproxy.cfg")).toMatch(/default-server .*on-marked-down shutdown-sessions/);
  });

  test("G3 Patroni acknowledges nothing that one machine alone has, and its times leave room for a retry", () => {
    const { dcs } = (parse(read("patroni.yml")) as { readonly bootstrap: { readonly dcs: Record<string, number | boolean> } }).bootstrap;
    expect(dcs).toMatchObject({ synchronous_mode: true, synchronous_mode_strict: true });
    expect(Number(dcs.loop_wait) + 2 * Number(dcs.retry_timeout)).toBeLessThanOrEqual(Number(dcs.ttl));
  });

  test("the gateways have only settings that there are, and wait for the second machine", () => {
    for (const name of ["gateway-1", "gateway-2"]) {
      const { environment = {} } = services[name] ?? {};
      for (const setting of Object.keys(environment).filter((key) => key.startsWith("PALISADE_")))
        expect(settings).toContain(`\`${setting}\``);
      expect(environment.PALISADE_DURABILITY).toBe("sync");
    }
  });
});
