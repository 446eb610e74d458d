// The compose files confine what they run, and hand keys and passwords over so that they can be
// withdrawn and not be listed. The files of deploy/ha fit each other: what compose.yaml sets is what
// the configurations take, and its gateways have settings that the gateway understands. `npm run
// faults -- --ha` starts Patroni, HAProxy and pgbouncer with them.
import { readdirSync, readFileSync } from "node:fs";
import { posix } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { memoryInFolder } from "../../packages/testkit/src/servers/patroni.js";

const read = (file: string): string => readFileSync(new URL(`../../deploy/ha/${file}`, import.meta.url), "utf8");

interface Service {
  readonly environment?: Readonly<Record<string, string>>;
  readonly command?: readonly string[];
  readonly volumes?: readonly (string | { readonly type: string; readonly source: string; readonly target: string })[];
  readonly extends?: { readonly file: string };
}
const servicesIn = (text: string): Readonly<Record<string, Service>> =>
  (parse(text, { merge: true }) as { readonly services: Readonly<Record<string, Service>> }).services;
const services = servicesIn(read("compose.yaml"));
const settings = readFileSync(new URL("../../docs/settings.md", import.meta.url), "utf8");

describe.each(["docker-compose.yml", "deploy/ha/compose.yaml"])("%s", (file) => {
  const own = Object.values(servicesIn(read(`../../${file}`))).filter((service) => service.extends === undefined);

  test("no process gets a right that its account does not have, and none writes but to volumes and memory", () => {
    const confined = { cap_drop: ["ALL"], security_opt: ["no-new-privileges:true"], read_only: true };
    for (const service of own) expect(service).toMatchObject(confined);
  });

  test("no password is an argument, which whoever lists processes can read", () => {
    // $$ is left to the shell in the container, which takes it from its environment.
    const filledIn = own.flatMap(({ command = [] }) => command.filter((word) => /\$/.test(word.replaceAll("$$", ""))));
    expect(filledIn).toEqual([]);
  });

  test("a gateway reads its keys where they are changed: a copy, or a mount of one file, would keep what was replaced", () => {
    const gateways = own.filter(({ environment }) => environment?.PALISADE_API_KEYS_FILE !== undefined);
    expect(gateways).not.toEqual([]);
    for (const { environment = {}, volumes = [] } of gateways) {
      const keys = posix.parse(environment.PALISADE_API_KEYS_FILE ?? "");
      const [mount] = volumes.filter((volume) => typeof volume !== "string" && volume.target === keys.dir);
      expect(mount).toMatchObject({ type: "bind", read_only: true });
      const [, folder = ""] = /^\$\{API_KEYS_FOLDER:-(.*)\}$/.exec(typeof mount === "object" ? mount.source : "") ?? [];
      expect(readdirSync(new URL(`${folder}/`, new URL(`../../${file}`, import.meta.url)))).toContain(keys.base);
    }
  });
});

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

  test("its Postgres servers that are killed in a fault run leave nothing in /dev/shm, and nothing else of patroni.yml is changed", () => {
    const [shipped, run] = [read("patroni.yml"), memoryInFolder(read("patroni.yml"))].map((text) => parse(text));
    expect(run.postgresql.parameters).toEqual({ ...shipped.postgresql.parameters, dynamic_shared_memory_type: "mmap" });
    expect({ ...run, postgresql: { ...run.postgresql, parameters: shipped.postgresql.parameters } }).toEqual(shipped);
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
