// The manifests of deploy/kubernetes: of the types of Kubernetes' API, with settings that the
// gateway understands, and with names that match each other.
import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";

const root = fileURLToPath(new URL("../..", import.meta.url));
const folder = join(root, "deploy/kubernetes");
const run = promisify(execFile);

interface Container {
  readonly image: string;
  readonly env: readonly { readonly name: string; readonly value?: string }[];
}
interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly data?: Readonly<Record<string, string>>;
  readonly spec: {
    readonly replicas: number;
    readonly serviceName?: string;
    readonly maxUnavailable?: number;
    readonly selector: { readonly matchLabels: object };
    readonly podSelector?: { readonly matchLabels: object };
    readonly template: {
      readonly metadata: { readonly labels: object };
      readonly spec: { readonly terminationGracePeriodSeconds: number; readonly containers: readonly [Container] };
    };
  };
}

const kustomization = parse(await readFile(join(folder, "kustomization.yaml"), "utf8")) as { readonly resources: readonly string[] };
const manifests = (await Promise.all(kustomization.resources.map(read))).flat();

const workloads = [
  ["StatefulSet", "redis"],
  ["Deployment", "gateway"],
] as const;

async function read(file: string): Promise<readonly Manifest[]> {
  return parseAllDocuments(await readFile(join(folder, file), "utf8"), { strict: true, uniqueKeys: true }).map((document) => {
    if (document.errors[0] !== undefined) throw document.errors[0];
    return document.toJS() as Manifest;
  });
}

function only(kind: string, name: string): Manifest {
  const [found, ...others] = manifests.filter((manifest) => manifest.kind === kind && manifest.metadata.name === name);
  if (found === undefined || others.length > 0) throw new Error(`${others.length + 1} manifests are ${kind} ${name}`);
  return found;
}

/** Fields that the type lacks are errors of the compiler, because the objects are written out. */
async function compilerErrors(objects: readonly Pick<Manifest, "apiVersion" | "kind">[]): Promise<string> {
  const modules = objects.map((manifest, at) => {
    const group = manifest.apiVersion.includes("/") ? manifest.apiVersion.replace(".k8s.io/", "/") : `core/${manifest.apiVersion}`;
    return `import type { ${manifest.kind} as T${at} } from "kubernetes-types/${group}";\nexport const m${at}: T${at} = ${JSON.stringify(manifest)};\n`;
  });
  const place = await mkdtemp(join(tmpdir(), "palisade-manifests-"));
  try {
    await writeFile(join(place, "manifests.ts"), modules.join(""));
    const paths = { "kubernetes-types/*": [join(root, "node_modules/kubernetes-types/*")] };
    const compilerOptions = { module: "esnext", moduleResolution: "bundler", strict: true, noEmit: true, types: [], paths };
    await writeFile(join(place, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts"] }));
    const compiler = join(root, "node_modules/typescript/bin/tsc");
    return await run(process.execPath, [compiler, "--pretty", "false", "-p", place], { cwd: place }).then(
      () => "",
      ({ stdout }: { readonly stdout: string }) => stdout,
    );
  } finally {
    await rm(place, { recursive: true, force: true });
  }
}

test("each file is named by the kustomization", async () => {
  const files = (await readdir(folder)).filter((name) => name.endsWith(".yaml") && name !== "kustomization.yaml");
  expect(files.toSorted()).toEqual(kustomization.resources.toSorted());
});

test("each manifest is of its type in Kubernetes' API, and a misspelled field is none", { timeout: 120_000 }, async () => {
  expect(manifests.length).toBeGreaterThanOrEqual(10);
  expect(await compilerErrors(manifests)).toBe("");
  const misspelled = structuredClone(only("StatefulSet", "redis")) as object;
  Object.assign((misspelled as { spec: object }).spec, { podManagmentPolicy: "Parallel" });
  expect(await compilerErrors([misspelled as Manifest])).toContain("podManagmentPolicy");
});

test("the settings of the gateway are those of docs/settings.md, and its program takes them", { timeout: 60_000 }, async () => {
  const known = new Set(
    [...(await readFile(join(root, "docs/settings.md"), "utf8")).matchAll(/^\| `([A-Z_]+)`<br>/gm)].map(([, name]) => name),
  );
  const { env } = only("Deployment", "gateway").spec.template.spec.containers[0];
  const helpers = env.filter(({ name }) => !known.has(name)).map(({ name }) => name);
  expect(helpers).toEqual(["REDIS_PASSWORD"]);
  expect(known.size).toBeGreaterThan(20);
  const values = Object.fromEntries(env.map(({ name, value = "postgres://palisade@postgres/palisade" }) => [name, value]));
  const given = {
    ...values,
    REDIS_PASSWORD: undefined,
    PALISADE_REDIS_URLS: values.PALISADE_REDIS_URLS?.replaceAll("$(REDIS_PASSWORD)", "x"),
  };
  const keys = join(root, "packages/gateway/this-machine-only/api-keys.json");
  const program = join(root, "packages/gateway/dist/main.js");
  const checked = run(process.execPath, [program, "--check-config"], {
    env: { PATH: process.env.PATH, HOST: "0.0.0.0", ...given, PALISADE_API_KEYS_FILE: keys },
  });
  await expect(checked).resolves.toBeDefined();
});

test("a stop may take as long as the gateway's settings let it take, and some seconds more", () => {
  const { containers, terminationGracePeriodSeconds } = only("Deployment", "gateway").spec.template.spec;
  const longest = ["PALISADE_UNREADY_MS", "PALISADE_DRAIN_MS"].map((setting) =>
    Number(containers[0].env.find(({ name }) => name === setting)?.value),
  );
  expect(terminationGracePeriodSeconds * 1_000).toBeGreaterThanOrEqual(longest.reduce((sum, ms) => sum + ms, 5_000));
});

test("T1 the gateway asks every node under its stable name, and each keeps what it answers", () => {
  const { spec } = only("StatefulSet", "redis");
  const urls = only("Deployment", "gateway").spec.template.spec.containers[0].env.find(({ name }) => name === "PALISADE_REDIS_URLS")?.value;
  const names = Array.from({ length: spec.replicas }, (_, at) => `redis://:$(REDIS_PASSWORD)@redis-${at}.${spec.serviceName}:6379`);
  expect(spec.replicas).toBe(5);
  expect(urls?.split(",")).toEqual(names);
  expect(only("Service", spec.serviceName ?? "").metadata.name).toBe(spec.serviceName);
  const config = only("ConfigMap", "redis").data?.["redis.conf"]?.split("\n") ?? [];
  for (const line of ["appendonly yes", "appendfsync always", "no-appendfsync-on-rewrite no", "maxmemory-policy noeviction"])
    expect(config).toContain(line);
});

test("budgets and policies select the pods, and the image of Redis is that of the compose file", async () => {
  for (const [kind, name] of workloads) {
    const { selector, template } = only(kind, name).spec;
    expect(selector.matchLabels).toEqual(template.metadata.labels);
    expect(only("PodDisruptionBudget", name).spec).toMatchObject({ maxUnavailable: 1, selector });
    expect(only("NetworkPolicy", name).spec.podSelector).toEqual(selector);
  }
  const compose = await readFile(join(root, "docker-compose.yml"), "utf8");
  for (const [kind, name] of workloads) expect(compose).toContain(`image: ${only(kind, name).spec.template.spec.containers[0].image}\n`);
});
