// The rules of this house that no linter knows, as text: each has a sample that breaks it, and this
// checkout breaks none. A rule is a pattern that must not occur, or a question about the whole tree.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { posix } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

type Files = Readonly<Record<string, string>>;
type Rule = (files: Files) => readonly string[];

const root = fileURLToPath(new URL("../..", import.meta.url));
const SOURCE = /^(packages\/[^/]+\/src|tools)\/.*\.(ts|mjs|lua|sql|c)$/;
const TEST = /\.test\.ts$/;

/** All that a commit could hold, but what is generated. */
function checkout(): Files {
  const list = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], { cwd: root, encoding: "utf8" });
  const paths = list
    .split("\0")
    .filter((path) => /\.(ts|mjs|js|json|md|ya?ml|lua|sql|sh|c|tla|diff)$/.test(path) && !/lock\.(json|yaml)$/.test(path));
  return Object.fromEntries(
    paths.filter((path) => existsSync(`${root}${path}`)).map((path) => [path, readFileSync(`${root}${path}`, "utf8")]),
  );
}

const without = (comments: string): string => comments.replace(/\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*$/gm, "");
const never =
  (where: RegExp, what: RegExp, except?: RegExp): Rule =>
  (files) =>
    Object.entries(files).flatMap(([path, text]) =>
      where.test(path) && !except?.test(path)
        ? [...without(text).matchAll(new RegExp(what, "gm"))].map(([found]) => `${path}: ${found.trim()}`)
        : [],
    );
const each =
  (where: RegExp, finding: (text: string, path: string) => string | undefined): Rule =>
  (files) =>
    Object.entries(files).flatMap(([path, text]) => {
      const found = where.test(path) ? finding(text, path) : undefined;
      return found === undefined ? [] : [`${path}: ${found}`];
    });

const layersOf: Readonly<Record<string, string>> = {
  lock: "platform/ protocol/ quorum.ts options/ lease/ waiting/ redis/ fleet-calls.ts locker.ts testing.ts metrics/ tracing/ index.ts redlock.ts",
  page: "bundle.generated.ts messages.ts gateway.ts lock-watch.ts live.ts page.ts index.ts",
  gateway:
    "version.generated.ts limits.ts fence/ store/ write/ fenced-store.ts observe/ http/ settings/ recover.ts gateway.ts main.ts index.ts",
};

const layers: Rule = (files) =>
  Object.entries(files).flatMap(([path, text]) => {
    const [, name = "", own = ""] = /^packages\/([^/]+)\/src\/(.*)$/.exec(path) ?? [];
    const order = layersOf[name]?.split(" ");
    if (order === undefined || !path.endsWith(".ts")) return [];
    const layer = (file: string): number => order.findIndex((one) => file === one || (one.endsWith("/") && file.startsWith(one)));
    if (layer(own) < 0) return [`${path}: in no layer`];
    const imports = [...text.matchAll(/^(?:import|export)[^;'"]*?from "(\.[^"]+)"|import\("(\.[^"]+)"\)/gm)].map(
      ([, one, other]) => one ?? other ?? "",
    );
    return imports
      .filter((to) => layer(posix.join(posix.dirname(own), to).replace(/\.js$/, ".ts")) > layer(own))
      .map((to) => `${path}: ${to} is above`);
  });

const promises: Rule = (files) => {
  const spec = files["spec/invariants.md"] ?? "";
  const promised = [...spec.matchAll(/^## ([A-Z]\d) /gm)].map(([, id]) => id);
  const tests = Object.entries(files).filter(([path]) => TEST.test(path) && !path.endsWith("house.test.ts"));
  const named = tests.flatMap(([, text]) =>
    [...text.matchAll(/(?:test|it|describe)[\w.]*\((?:[^"'`]*\)\()?\s*["'`]((?:[A-Z]\d )+)/g)].flatMap(([, ids = ""]) =>
      ids.trim().split(" "),
    ),
  );
  const chapters = spec.split(/^## /m).filter((chapter) => /^[A-Z]\d /.test(chapter));
  return [
    ...(promised.length === 0 ? ["there are no promises"] : []),
    ...promised.filter((id) => !named.includes(id ?? "")).map((id) => `no test names ${id}`),
    ...named.filter((id) => !promised.includes(id)).map((id) => `${id} is no promise`),
    ...chapters.filter((chapter) => !/^\*\*Checked by\*\* \S/m.test(chapter)).map((chapter) => `nothing checks ${chapter.slice(0, 2)}`),
  ];
};

const links: Rule = (files) =>
  Object.entries(files).flatMap(([path, text]) =>
    path.endsWith(".md")
      ? [...text.matchAll(/\]\((?!https?:|mailto:|#)([^)#\s]+)/g)].flatMap(([, to = ""]) => {
          const target = posix.join(posix.dirname(path), to).replace(/\/$/, "");
          return target in files || existsSync(`${root}${target}`) ? [] : [`${path}: ${to}`];
        })
      : [],
  );

/** Whoever is woken by an alert finds what to do about it. */
const alerts: Rule = (files) => {
  const shipped = [...(files["deploy/prometheus/palisade.rules.yml"] ?? "").matchAll(/- alert: (\w+)/g)].map(([, name]) => name);
  const described = [...(files["docs/operating.md"] ?? "").matchAll(/`(Palisade[A-Z]\w+)`/g)].map(([, name]) => name);
  return [
    ...shipped.filter((name) => !described.includes(name)).map((name) => `docs/operating.md says nothing of ${name}`),
    ...described.filter((name) => !shipped.includes(name)).map((name) => `docs/operating.md: ${name} is no rule`),
  ];
};

/** By a commit, which nobody can move as one moves a tag; the version beside it is what a reader and Dependabot look at. */
const actions: Rule = (files) => {
  const used = Object.entries(files).flatMap(([path, text]) =>
    path.startsWith(".github/workflows/") ? [...text.matchAll(/\buses: (\S+?)@(.*)$/gm)].map(([, name, pin]) => ({ path, name, pin })) : [],
  );
  return used
    .filter(
      ({ name, pin = "" }) =>
        !/^[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(pin) || used.some((other) => other.name === name && other.pin !== pin),
    )
    .map(({ path, name, pin }) => `${path}: ${name}@${pin}`);
};

const word = (...halves: readonly string[]): RegExp => new RegExp(`\\b${halves.join("")}\\b`);

/** Each rule with samples that break it. */
const rules: Readonly<Record<string, readonly [Rule, ...Files[]]>> = {
  "in the lock only platform/clock.ts knows the time": [
    never(
      /^packages\/lock\/src\/.*\.ts$/,
      /(?<![.\w"])(?:new Date\b|Date[.(]|performance\.|setTimeout\(|setInterval\()|globalThis\.set|Math\.random|AbortSignal\.timeout|hrtime|process\.uptime|"(?:node:)?(?:timers(?:\/promises)?|perf_hooks)"/,
      /platform\/clock\.ts$/,
    ),
    ...[
      "Date.now();",
      "new Date();",
      "performance.now();",
      "setTimeout(() => {}, 1);",
      "globalThis.setInterval(() => {}, 1);",
      "Math.random();",
      "AbortSignal.timeout(5);",
      "process.hrtime.bigint();",
      'import { setTimeout as s } from "node:timers/promises";',
    ].map((text) => ({ "packages/lock/src/locker.ts": text })),
  ],
  "no test is skipped, singled out, postponed or retried": [
    never(
      TEST,
      /\b(?:test|it|describe|suite)(?:\.\w+)*\.(?:only|skip|todo|skipIf|runIf|fails)\b|\b(?:test|it)(?:\.\w+)*\([^(]*\{[^}]*\b(?:retry|skip|only|todo|fails):/,
      /^tools\/test\/house/,
    ),
    ...[
      'test.only("x", () => {});',
      'describe.skip("x", () => {});',
      'it.todo("x");',
      'test.skipIf(true)("x", () => {});',
      'test.concurrent.only("x", () => {});',
      'test("x", { retry: 3 }, () => {});',
      'test("x", { skip: true }, () => {});',
    ].map((text) => ({ "a.test.ts": text })),
  ],
  "a folder imports only from the layers below it, types included": [
    layers,
    { "packages/lock/src/lease/acquire.ts": 'import type { X } from "../redis/node.js";' },
    { "packages/lock/src/some/x.ts": "" },
  ],
  "who uses the client or the guard installs and loads nothing else with it": [
    never(
      /^packages\/(client|guard)\/(src\/|package\.json$)/,
      /"dependencies"|(?:from |import\()"(?!#exchange"|\.\/(?!tracing\.|database-url\.|schema\.)[a-z-]+\.js")[^"]+"/,
      /(?:client\/src\/(?:tracing|exchange-node)|guard\/src\/(?:database-url|schema|for-gateway|main))\.ts$/,
    ),
    { "packages/guard/src/guard.ts": 'import pg from "pg";' },
    { "packages/guard/src/index.ts": 'export { migrate } from "./schema.js";' },
    { "packages/client/src/retry.ts": 'const { x } = await import("@palisade/lock");' },
    { "packages/client/src/index.ts": 'export { traceClients } from "./tracing.js";' },
    { "packages/client/package.json": '{ "dependencies": { "undici": "7" } }' },
  ],
  "of the client only exchange-node.ts names what is Node's": [
    never(/^packages\/client\/src\//, /\b(?:Buffer|process)\b[.(<]/, /exchange-node\.ts$/),
    { "packages/client/src/answer.ts": "Buffer.from(text);" },
  ],
  "every promise is named by a test, and says what checks it": [
    promises,
    {},
    { "spec/invariants.md": "## G1 Fence\n\n**Checked by** races.\n" },
    { "spec/invariants.md": "## G1 Fence\n", "a.test.ts": 'test("G1 holds", () => {});' },
    { "spec/invariants.md": "## G1 F\n\n**Checked by** x\n", "a.test.ts": 'test("G1 x");test("G9 y");' },
  ],
  "every link of a document leads somewhere": [links, { "README.md": "[how](docs/none.md)" }],
  "docs/operating.md says what to do for each alert that is shipped, and names no other": [
    alerts,
    { "deploy/prometheus/palisade.rules.yml": "      - alert: PalisadeDown" },
    { "docs/operating.md": "| `PalisadeDown` | start it |" },
  ],
  "an action of a workflow is pinned by its commit, and everywhere by the same": [
    actions,
    { ".github/workflows/ci.yml": "      - uses: actions/checkout@v7" },
    { ".github/workflows/ci.yml": `      - uses: a/b@${"0".repeat(40)}` },
    { ".github/workflows/ci.yml": `uses: a/b@${"0".repeat(40)} # v1.0.0\nuses: a/b@${"1".repeat(40)} # v1.0.1` },
  ],
  // Anybody may register the name of a program that is no package's.
  "a command to type names a package of ours": [
    never(
      /\.(md|tsx?|sql|ya?ml)$/,
      /npx palisade|(?<!by: ")palisade-(?:gateway|guard|dev) (?:--|(?:migrate|grant|recover|keygen|fences|unfence|doctor|sql)\b)/,
      /^tools\/test\/house/,
    ),
    { "README.md": "npx palisade-gateway" },
    { "a.ts": 'throw new Error("run palisade-gateway migrate");' },
  ],
  "every source file opens with a comment": [
    each(SOURCE, (text, path) => (/\/test\//.test(path) || /^(#!.*\n)?(\/\/|\/\*|--)/.test(text) ? undefined : "no comment")),
    { "packages/lock/src/a.ts": "export {};" },
  ],
  "nothing unfinished and no path of one machine is committed": [
    (files) =>
      Object.entries(files).flatMap(([path, text]) =>
        [word("TO", "DO"), word("FIX", "ME"), /(?<![\w.~$}/])\/(?:home\/[\w.-]+|Users\/[\w.-]+|root|work)\/[\w.-]+/].flatMap((mark) =>
          mark.test(text) && !path.startsWith("tools/test/") ? [`${path}: ${mark.exec(text)?.[0]}`] : [],
        ),
      ),
    { "a.md": `see /${"home"}/ada/x` },
    { "a.ts": `// /${"work"}/clone/x` },
    { "a.sh": `cd "/${"root"}/clone"` },
    { "a.ts": `// ${"TO"}${"DO"}: later` },
  ],
};

const tree = checkout();

describe.each(Object.entries(rules))("%s", (_, [rule, ...samples]) => {
  test("in this checkout", () => expect(rule(tree)).toEqual([]));
  test("and its samples are refused", () => expect(samples.filter((files) => rule(files).length === 0)).toEqual([]));
});
