// Feeds each rule a sample that breaks it and one that only looks as if it did. A rule that finds
// nothing here would find nothing anywhere.
import { describe, expect, test } from "vitest";
import { checkoutOf } from "../tidy/checkout.js";
import { clockOnly } from "../tidy/clock-only.js";
import { commentWidth, openingComments } from "../tidy/comments.js";
import { importDirections } from "../tidy/directions.js";
import { documentedExports } from "../tidy/documentation.js";
import { decisionForm, proseWidth } from "../tidy/documents.js";
import { oneEntry } from "../tidy/entries.js";
import { honestTests } from "../tidy/honest-tests.js";
import { layers } from "../tidy/layers.js";
import { fileUrls, noMachinePaths, nothingLeftOver } from "../tidy/leftovers.js";
import { promisesAreTested } from "../tidy/promises.js";
import { documentsPointSomewhere } from "../tidy/references.js";
import type { Rule } from "../tidy/rule.js";
import { rules } from "../tidy/rules.js";
import { fileLength, testLength } from "../tidy/sizes.js";
import { testedVersions } from "../tidy/tested-versions.js";
import { knownWords, meaningfulNames } from "../tidy/vocabulary.js";

type Files = Readonly<Record<string, string>>;

interface Sample {
  readonly rule: Rule;
  readonly breaks: readonly Files[];
  readonly keeps: readonly Files[];
}

const lines = (count: number): string => "// line\n".repeat(count);
const wide = "word ".repeat(25);
const inLock = (text: string): Files => ({ "packages/lock/src/locker.ts": text });
const inTest = (text: string): Files => ({ "packages/lock/test/unit/locker.test.ts": text });
const spec = (promises: string, tests = ""): Files => ({ "spec/invariants.md": promises, "packages/lock/test/unit/x.test.ts": tests });
const decision = "# 0007. X\n\n## Problem\n\n## Decision\n\n## Alternatives\n\n## Consequences\n";
const promise = "## G1 Fence\n\n**Checked by** races.\n";
const published = (entry: string): Files => ({
  "packages/lock/package.json": '{ "exports": { ".": { "default": "./dist/index.js" } } }',
  "packages/lock/src/index.ts": entry,
});
const word = (...halves: readonly string[]): string => halves.join("");

const samples: readonly Sample[] = [
  {
    rule: fileLength,
    breaks: [inLock(lines(301)), inTest(lines(501)), { "packages/lock/src/redis/lua/grant.lua": lines(301) }],
    keeps: [
      inLock(lines(300)),
      inTest(lines(500)),
      { "docs/operating.md": lines(900) },
      { "packages/lock/src/redis/lua.generated.ts": lines(900) },
    ],
  },
  {
    rule: testLength,
    breaks: [inTest(`function long() {\n${lines(50)}}`), inTest(`test("x", () => {\n${lines(50)}});`)],
    keeps: [
      inTest(`function fits() {\n${lines(48)}}`),
      inTest(`describe("chapter", () => {\n${lines(90)}});`),
      inLock(`function left() {\n${lines(50)}}`),
    ],
  },
  {
    rule: meaningfulNames,
    breaks: ["utils", "redis-helpers", "types", "lock.constants"].map((name) => ({ [`packages/lock/src/${name}.ts`]: "" })),
    keeps: ["media-type.ts", "commonwealth.ts", "lua.generated.ts", "0001_resources.sql"].map((name) => ({
      [`packages/lock/src/${name}`]: "",
    })),
  },
  {
    rule: knownWords,
    breaks: [
      { "packages/lock/src/turnstile.ts": "" },
      { "packages/lock/src/gizmo.ts": "" },
      { "packages/lock/src/redis/lua/gizmo.lua": "" },
      inLock("export class GizmoQueue {}"),
      { "packages/lock/src/turnstile.ts": "", "docs/glossary.md": "| turnstile | a queue |" },
    ],
    keeps: [
      { "packages/lock/src/gizmo.ts": "", "docs/glossary.md": "| word | meaning |\n| --- | --- |\n| gizmo, widget | a thing |" },
      { "packages/lock/src/gizmos.ts": "export class Widget {}", "docs/glossary.md": "| gizmo, widget | a thing |" },
      { "packages/lock/src/queue.ts": "export class Queue {}" },
      inTest("class Gizmo {}"),
    ],
  },
  {
    rule: importDirections,
    breaks: [
      inLock('import "@palisade/testkit";'),
      inLock('import { x } from "../../gateway/src/index.js";'),
      inLock('import { x } from "../test/fleet.js";'),
      inLock('export { test } from "vitest";'),
      { "packages/gateway/src/app.ts": 'import type { Lease } from "@palisade/lock/src/lease.js";' },
      { "packages/gateway/src/app.ts": 'const kit = await import("@palisade/testkit");' },
      { "packages/bench/src/main.ts": 'import { x } from "../../lock/src/index.js";' },
    ],
    keeps: [
      inLock('import Redis from "ioredis";\nimport { x } from "./node/keys.js";'),
      { "packages/gateway/src/app.ts": 'import type { Locker } from "@palisade/lock";' },
      { "packages/bench/src/main.ts": 'import { RedisFleet } from "@palisade/testkit";' },
    ],
  },
  {
    rule: layers,
    breaks: [
      { "packages/lock/src/quorum/tally.ts": 'import { x } from "../lease/acquire.js";' },
      { "packages/lock/src/lease/acquire.ts": 'import type { X } from "../redis/node.js";' },
      { "packages/lock/src/redis/node.ts": 'export type { X } from "../locker.js";' },
      { "packages/lock/src/somewhere/x.ts": "export {};" },
    ],
    keeps: [
      { "packages/lock/src/lease/acquire.ts": 'import { x } from "./release.js";\nimport type { Y } from "../quorum/tally.js";' },
      { "packages/lock/src/index.ts": 'export { x } from "./locker.js";' },
      { "packages/other/src/a.ts": 'import { x } from "./b.js";' },
    ],
  },
  {
    rule: clockOnly,
    breaks: [
      "Date.now();",
      "new Date();",
      "performance.now();",
      "setTimeout(() => {}, 1);",
      "globalThis.setInterval(() => {}, 1);",
      "Math.random();",
      "AbortSignal.timeout(5);",
      "process.hrtime.bigint();",
      'import { setTimeout as sleep } from "node:timers/promises";',
    ].map(inLock),
    keeps: [
      inLock("clock.now(); clock.setTimeout(() => {}, 1); const date: Date = given;"),
      { "packages/lock/src/platform/clock.ts": "export const now = () => performance.now();" },
      { "packages/gateway/src/app.ts": "Date.now();" },
    ],
  },
  {
    rule: oneEntry,
    breaks: [
      { "packages/lock/package.json": '{ "exports": { ".": { "default": "./dist/index.js" } } }', "packages/lock/src/redis/index.ts": "" },
    ],
    keeps: [
      {
        "packages/lock/package.json": '{ "exports": { ".": { "default": "./dist/index.js" }, "./client": "./dist/client/index.js" } }',
        "packages/lock/src/index.ts": "",
        "packages/lock/src/client/index.ts": "",
      },
    ],
  },
  {
    rule: openingComments,
    breaks: [inLock("export {};\n// late"), { "packages/lock/src/redis/lua/grant.lua": "local x = 1" }],
    keeps: [
      inLock("// What it decides.\n"),
      { "packages/lock/src/redis/lua/grant.lua": "-- What it decides." },
      { "tools/run.mjs": "#!/usr/bin/env node\n// What it decides." },
    ],
  },
  {
    rule: commentWidth,
    breaks: [`// ${wide}`, `/** ${wide} */`, ` * ${wide}`].map((text) => ({ "tools/a.ts": text })),
    keeps: [`const text = "${wide}";`, `// https://example.org/${wide}`, ` * @param {${wide}} x`].map(inLock),
  },
  {
    rule: honestTests,
    breaks: [
      'test.only("x", () => {});',
      'describe.skip("x", () => {});',
      'it.todo("x");',
      'test.skipIf(true)("x", () => {});',
      'test.concurrent.only("x", () => {});',
      'test("x", { retry: 3 }, () => {});',
      'test("x", { skip: true }, () => {});',
    ].map(inTest),
    keeps: ['test("x", async () => { list.only; createLocker({ retry: 3 }); });', 'test.each([1])("x %i", { timeout: 5 }, () => {});'].map(
      inTest,
    ),
  },
  {
    rule: fileUrls,
    breaks: [inTest(word('const path = new URL(".", import.meta', ".url).pathname;"))],
    keeps: [inTest('const path = fileURLToPath(new URL(".", import.meta.url));'), inTest("const path = new URL(request.url).pathname;")],
  },
  {
    rule: nothingLeftOver,
    breaks: [inLock(`// ${word("TO", "DO")}: later`), { "docs/operating.md": word("FIX", "ME") }],
    keeps: [inLock("const todo = list;"), inLock("// TODOS is a name")],
  },
  {
    rule: noMachinePaths,
    breaks: ["home/ada", "Users/ada", "root", "work"].map((start) => ({ "docs/operating.md": `see /${start}/palisade/x` })),
    keeps: ["/v1/work/orders", "https://example.org/home/page", "~/work/x", "/usr/bin/node"].map((path) => ({
      "docs/operating.md": `see ${path}`,
    })),
  },
  {
    rule: documentedExports,
    breaks: [
      "export interface Lease { readonly token: number }",
      "/** A lease. */\nexport interface Lease { readonly token: number }",
      "/* A lease. */\nexport type Lease = number;",
      "/** A lease. */\nexport class Lease { constructor(/** Its token. */ readonly token: number) {} }",
      "/** A lease. */\nexport class Lease { release(): void {} }",
      "/** Another. */\nexport type Other = number;\nexport type Lease = number;",
    ]
      .map((text) => ({ ...published('export type { Lease } from "./locker.js";'), ...inLock(text) }))
      .concat(published("export function createLocker(): void {}")),
    keeps: [
      "/** A lease. */\nexport interface Lease { /** Its token. */ readonly token: number }",
      "/** A lease. */\nexport class Lease { readonly #token = 1; constructor(token: number) {} }",
      "/** A lease. */\nexport const Lease = 1;\nexport type Inner = number;",
    ]
      .map((text) => ({ ...published('export { Lease } from "./locker.js";'), ...inLock(text) }))
      .concat(published("// No public API.\nexport function createLocker(): void {}")),
  },
  {
    rule: testedVersions,
    breaks: [
      ...["^1.2.3", "~1.2.3", "1.2", "latest", "*", "npm:redlock@^4.0.0"].map((version) => ({
        "package.json": `{ "dependencies": { "x": "${version}" } }`,
      })),
      ...["1.2.3", "~1.2.3", "workspace:*", "latest"].map((version) => ({
        "packages/lock/package.json": `{ "dependencies": { "x": "${version}" } }`,
      })),
      { "examples/transfer/package.json": '{ "private": true, "devDependencies": { "x": "1.2.3" } }' },
    ],
    keeps: [
      ...["1.2.3", "5.0.0-beta.2", "workspace:*", "npm:redlock@4.2.0"].map((version) => ({
        "packages/x/package.json": `{ "devDependencies": { "x": "${version}" } }`,
      })),
      { "packages/lock/package.json": '{ "dependencies": { "x": "^1.2.3", "y": "workspace:^" } }' },
      { "packages/bench/package.json": '{ "private": true, "dependencies": { "x": "1.2.3" } }' },
      { "examples/transfer/package.json": '{ "private": true, "dependencies": { "x": "^1.2.3" } }' },
    ],
  },
  {
    rule: promisesAreTested,
    breaks: [
      {},
      spec(promise),
      spec(`${promise}\n## Pending\n\n- G1\n`, 'test("G1 holds", () => {});'),
      spec(promise, 'test("it is G1 that holds", () => {});'),
      spec(promise, 'test("G1 holds", () => {});\ntest("G9 holds", () => {});'),
      spec(`${promise}\n## Pending\n\n- G7\n`, 'test("G1 holds", () => {});'),
      spec("## G1 Fence\n\nNothing checks it.\n", 'test("G1 holds", () => {});'),
    ],
    keeps: [
      spec(`${promise}\n## Pending\n\n- G1\n`),
      spec(promise, 'test("G1 holds", () => {});'),
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the sample is a template
      spec(promise, "test.each([1])(`G1 holds ${1}`, () => {});"),
    ],
  },
  {
    rule: documentsPointSomewhere,
    breaks: [{ "README.md": "[how](docs/none.md)" }, { "docs/a.md": "see `packages/lock/src/none.ts`" }],
    keeps: [{ "README.md": "[how](docs/a.md#part) [web](https://example.org) `npm test`", "docs/a.md": "[back](../README.md) in `docs/`" }],
  },
  {
    rule: proseWidth,
    breaks: [{ "README.md": wide }, { "docs/a.md": `- ${wide}\n` }],
    keeps: [
      { "docs/a.md": `| ${wide} |\n\n\`\`\`\n${wide}\n\`\`\`\n` },
      { "docs/a.md": `<img alt="${wide}">\n[x](https://example.org/${"long/".repeat(30)})` },
      { "docs/a.md": `# A\n\nMade by \`npm run bench\`.\n\n${wide}` },
      { "packages/lock/src/a.lua": wide },
    ],
  },
  {
    rule: decisionForm,
    breaks: [
      { "docs/adr/0007-x.md": decision.replace("0007. ", "0007 · ") },
      { "docs/adr/0008-x.md": decision },
      { "docs/adr/0007-x.md": decision.replace("## Alternatives", "**Alternatives**") },
    ],
    keeps: [
      { "docs/adr/0007-x.md": decision },
      { "docs/adr/0007-x.md": "# 0007. X\n\nReplaced by [ADR 0008](0008-y.md).\n\n## Decision\n" },
    ],
  },
];

test("every rule has samples", () => {
  expect(samples.map(({ rule }) => rule.name).sort()).toEqual(rules.map(({ name }) => name).sort());
});

for (const { rule, breaks, keeps } of samples) {
  describe(rule.name, () => {
    test.each(breaks.map((files) => [files]))("is broken by sample %#", (files) => {
      expect(rule.findings(checkoutOf(files))).not.toEqual([]);
    });
    test.each(keeps.map((files) => [files]))("is kept by sample %#", (files) => {
      expect(rule.findings(checkoutOf(files))).toEqual([]);
    });
  });
}
